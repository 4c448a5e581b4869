//===- HostFunctionTest.cpp - Calls of compiled host functions ------------===//
//
// Host functions are called through nsrt_invoke_<f>: arguments of every kind
// arrive, results are the caller's, inputs stay as they are; what cannot be
// compiled, linked or loaded gets one clear error; the address sanitizer sees
// what compiled code does.

#include "Elements.h"
#include "HostProgram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace neuroshard;
using testing::ElementsAre;
using testing::HasSubstr;

/// What the library under test calls; bound when it is loaded.
extern "C" void *nsrt_test_next(void *device, int64_t step, void *handle) {
  *static_cast<int64_t *>(device) = step;
  return static_cast<char *>(handle) + 1;
}

extern "C" void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment,
                                                    uint64_t bytes) {
  return std::aligned_alloc(alignment, bytes);
}

extern "C" void _mlir_memref_to_llvm_free(void *tensor) { std::free(tensor); }

namespace {

Descriptor<2> describe(float *data, int64_t rows, int64_t columns) {
  return {data, data, 0, {rows, columns}, {columns, 1}};
}

TEST(HostFunctions, PassEveryKindOfArgument) {
  Program program(R"mlir(
    func.func private @nsrt_test_next(!llvm.ptr, i64, !llvm.ptr) -> !llvm.ptr
    func.func @step(%device: !llvm.ptr {nsrt.device}, %x: tensor<?xf32>,
                    %rate: f32, %step: i64, %handle: !llvm.ptr)
        -> (tensor<?xf32>, !llvm.ptr, f32) {
      %next = call @nsrt_test_next(%device, %step, %handle)
          : (!llvm.ptr, i64, !llvm.ptr) -> !llvm.ptr
      %y = linalg.map ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>)
          (%in: f32, %out: f32) {
            %scaled = arith.mulf %in, %rate : f32
            linalg.yield %scaled : f32
          }
      return %y, %next, %rate : tensor<?xf32>, !llvm.ptr, f32
    })mlir");
  NativeLibrary library(*program.module);

  int64_t device = 0, step = 42;
  float rate = 0.5f;
  float data[] = {-1, 1, 2, 3, -1};
  Descriptor<1> x{nullptr, data + 1, 0, {3}, {1}};
  char *handle = reinterpret_cast<char *>(0x1000);
  struct {
    Descriptor<1> y;
    char *next;
    float rate;
  } results;
  void *arguments[] = {&results, &device, &x, &rate, &step, &handle};
  findInvoke(library, "step")(arguments);

  EXPECT_EQ(device, 42);
  EXPECT_EQ(results.next, handle + 1);
  EXPECT_EQ(results.rate, 0.5f);
  ASSERT_EQ(results.y.sizes[0], 3);
  EXPECT_THAT(std::vector<float>(results.y.aligned, results.y.aligned + 3),
              ElementsAre(0.5f, 1.0f, 1.5f));
  EXPECT_THAT(data, ElementsAre(-1, 1, 2, 3, -1)) << "the input is not scratch";
  std::free(results.y.allocated);
  EXPECT_EQ(library.find("step"), nullptr) << "only entry points are exported";
}

TEST(HostFunctions, ReturnCopiesOfArguments) {
  Program program(R"mlir(
    func.func @same(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
      return %x : tensor<?x3xf32>
    })mlir");
  NativeLibrary library(*program.module);
  float data[] = {1, 2, 3, 4, 5, 6};
  Descriptor<2> x = describe(data, 2, 3), y;
  void *arguments[] = {&y, &x};
  findInvoke(library, "same")(arguments);
  ASSERT_NE(y.aligned, x.aligned);
  EXPECT_THAT(std::vector<float>(y.aligned, y.aligned + 6),
              ElementsAre(1, 2, 3, 4, 5, 6));
  std::free(y.allocated);
}

TEST(HostFunctions, JoinColumns) {
  Program program(R"mlir(
    func.func @join(%a: tensor<?x2xf32>, %b: tensor<?x3xf32>)
        -> tensor<?x5xf32> {
      %c = tensor.concat dim(1) %a, %b
          : (tensor<?x2xf32>, tensor<?x3xf32>) -> tensor<?x5xf32>
      return %c : tensor<?x5xf32>
    })mlir");
  NativeLibrary library(*program.module);
  float a[] = {1, 2, 6, 7}, b[] = {3, 4, 5, 8, 9, 10};
  Descriptor<2> left = describe(a, 2, 2), right = describe(b, 2, 3), joined;
  void *arguments[] = {&joined, &left, &right};
  findInvoke(library, "join")(arguments);
  EXPECT_THAT(std::vector<float>(joined.aligned, joined.aligned + 10),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  std::free(joined.allocated);
}

TEST(HostFunctions, RoundBf16Once) {
  Program program(R"mlir(
    func.func @round(%x: tensor<?xf32>) -> tensor<?xbf16> {
      %y = arith.truncf %x : tensor<?xf32> to tensor<?xbf16>
      return %y : tensor<?xbf16>
    })mlir");
  NativeLibrary library(*program.module);
  // Ties to even both ways, a denormal, and an ordinary value.
  std::vector<float> values = {1.00390625f, 1.01171875f, 0x1.8p-133f, 0.1f};
  Descriptor<1> x{values.data(), values.data(), 0, {4}, {1}}, y;
  void *arguments[] = {&y, &x};
  findInvoke(library, "round")(arguments);
  auto *rounded = reinterpret_cast<uint16_t *>(y.aligned);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(rounded[i], toBits(ElementType::BF16, values[i])) << i;
  std::free(y.allocated);
}

/// The errors of compiling `text`, which must fail and leave no library.
std::vector<std::string> errorsOf(const char *text, NativeOptions options,
                                  const char *file = "program.so") {
  Program program(text);
  std::string folder = makeTemporaryFolder();
  std::string path = folder + "/" + file;
  EXPECT_TRUE(failed(compileToSharedLibrary(*program.module, options, path)));
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
  return program.errors;
}

constexpr char kTrivial[] = "func.func @f() { return }";

TEST(NativeErrors, UnknownTarget) {
  NativeOptions options;
  options.targetCpu = "abacus";
  EXPECT_THAT(errorsOf(kTrivial, options),
              ElementsAre(HasSubstr("unknown target cpu 'abacus'")));
}

TEST(NativeErrors, TargetWithoutMode) {
  NativeOptions options;
  for (const char *cpu : {"i386", "pentium4", "geode"}) {
    options.targetCpu = cpu;
    EXPECT_THAT(errorsOf(kTrivial, options),
                ElementsAre(HasSubstr("it has no 64-bit mode")))
        << cpu;
  }
}

TEST(NativeErrors, NoLinker) {
  NativeOptions options;
  options.linker = "no-such-linker";
  EXPECT_THAT(errorsOf(kTrivial, options),
              ElementsAre("linker 'no-such-linker' not found"));
}

TEST(NativeErrors, LinkerFails) {
  NativeOptions options;
  options.linker = "false";
  EXPECT_THAT(errorsOf(kTrivial, options),
              ElementsAre(HasSubstr("ended with status 1")));
}

TEST(NativeErrors, NoSuchFolder) {
  EXPECT_THAT(errorsOf(kTrivial, {}, "absent/program.so"),
              ElementsAre(HasSubstr("No such file or directory")));
}

TEST(NativeErrors, BadLevel) {
  NativeOptions options;
  options.optLevel = 4;
  EXPECT_THAT(errorsOf(kTrivial, options),
              ElementsAre("optimisation level must be 0 to 3, got: 4"));
}

TEST(NativeErrors, TypeWithoutRepresentation) {
  EXPECT_THAT(
      errorsOf("func.func @f(%x: !shape.shape) { return }", {}),
      ElementsAre(HasSubstr("public function 'f' has a type that host code "
                            "cannot pass: '!shape.shape'")));
}

TEST(NativeErrors, OperationWithoutLowering) {
  EXPECT_THAT(errorsOf("func.func @f() -> index {\n"
                       "  %x = gpu.thread_id x\n"
                       "  return %x : index\n"
                       "}",
                       {}),
              ElementsAre("'gpu.thread_id' op has no lowering to native code"));
}

TEST(NativeErrors, UndefinedSymbolIsFoundOnLoading) {
  Program program("func.func private @nsrt_absent()\n"
                  "func.func @f() { call @nsrt_absent() : () -> () return }");
  std::string folder = makeTemporaryFolder();
  std::string path = folder + "/program.so";
  ASSERT_TRUE(succeeded(compileToSharedLibrary(*program.module, {}, path)));
  EXPECT_EQ(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL), nullptr);
  EXPECT_THAT(dlerror(), HasSubstr("nsrt_absent"));
  std::filesystem::remove_all(folder);
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(NativeFiles, AreReproducibleAndIntermediatesKept) {
  NativeOptions options;
  options.keepIntermediates = true;
  options.targetCpu = "x86-64-v2";
  std::string folder = makeTemporaryFolder();
  std::string first = folder + "/first.so", second = folder + "/second.so";
  Program one(kTrivial), two(kTrivial);
  ASSERT_TRUE(succeeded(compileToSharedLibrary(*one.module, options, first)));
  ASSERT_TRUE(succeeded(compileToSharedLibrary(*two.module, options, second)));
  EXPECT_EQ(readFile(first), readFile(second));
  EXPECT_THAT(readFile(first + ".mlir"), HasSubstr("llvm.func @f"));
  EXPECT_THAT(readFile(first + ".ll"),
              HasSubstr("\"target-cpu\"=\"x86-64-v2\""));
  EXPECT_FALSE(readFile(first + ".o").empty());
  std::filesystem::remove_all(folder);
}

constexpr char kStore[] = R"mlir(
    func.func @store(%data: !llvm.ptr, %index: i64, %value: f32) {
      %element = llvm.getelementptr %data[%index]
          : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %value, %element : f32, !llvm.ptr
      return
    })mlir";

TEST(AddressSanitizer, InstrumentsCodeWhenAskedTo) {
  std::string folder = makeTemporaryFolder(), path = folder + "/program.so";
  for (bool isAsked : {false, true}) {
    NativeOptions options;
    options.keepIntermediates = true;
    options.addressSanitizer = isAsked;
    Program program(kStore);
    ASSERT_TRUE(
        succeeded(compileToSharedLibrary(*program.module, options, path)));
    bool isInstrumented = readFile(path + ".ll").find("__asan_report_store4") !=
                          std::string::npos;
    EXPECT_EQ(isInstrumented, isAsked);
  }
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
  EXPECT_THAT(dlerror(), HasSubstr("undefined symbol: __asan_"));
#endif
  std::filesystem::remove_all(folder);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(AddressSanitizerDeathTest, StopsAStorePastTheEnd) {
  Program program(kStore);
  NativeLibrary library(*program.module);
  std::vector<float> data(4);
  auto store = [&](int64_t index) {
    float *begin = data.data(), value = 2;
    void *arguments[] = {&begin, &index, &value};
    findInvoke(library, "store")(arguments);
  };
  store(3);
  EXPECT_EQ(data[3], 2);
  EXPECT_DEATH(store(4), "heap-buffer-overflow");
}
#endif

} // namespace
