//===- EmulatedModuleTest.cpp - GPU modules compiled and emulated ---------===//
//
// Compiles a hand-written gpu.module, runs it through the emulated driver as
// the runtime loads it, and compares with plain C++. Then removes each thing
// that makes the kernel right, one at a time: every removal must be noticed.
//
//===----------------------------------------------------------------------===//

#include "CompiledModule.h"
#include "EmulatorLibrary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace neuroshard;
using namespace neuroshard::cuda;
using testing::HasSubstr;

namespace {

/// A group of 8 lanes sums the elements of the rows of a bag, a row at a time
/// over all lanes; lane 0 stores the sum, and all lanes read it again. Groups
/// of a warp have bags of different lengths.
const char *const kBagSums = R"(
gpu.module @kernels {
  gpu.func @bag_sums(%offsets: !llvm.ptr<1>, %ids: !llvm.ptr<1>,
                     %rows: !llvm.ptr<1> {llvm.align = 16 : i64},
                     %sums: !llvm.ptr<1>, %copies: !llvm.ptr<1>, %bags: i32)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %c31 = arith.constant 31 : i32
    %c32 = arith.constant 32 : i32
    %c255 = arith.constant 255 : i32
    %f0 = arith.constant 0.0 : f32
    %block = gpu.block_id x
    %threads = gpu.block_dim x
    %tx = gpu.thread_id x
    %before = arith.muli %block, %threads : index
    %global = arith.addi %before, %tx : index
    %thread = arith.index_cast %global : index to i32
    %bag = arith.divui %thread, %c8 : i32
    %lane = arith.remui %thread, %c8 : i32
    %in_warp = arith.remui %thread, %c32 : i32
    %first = arith.subi %in_warp, %lane : i32
    %mask = arith.shli %c255, %first : i32
    %guard = arith.cmpi ult, %bag, %bags : i32
    scf.if %guard {
      %o = llvm.getelementptr %offsets[%bag] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %begin = llvm.load %o invariant : !llvm.ptr<1> -> i32
      %o1 = llvm.getelementptr %o[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
      %end = llvm.load %o1 invariant : !llvm.ptr<1> -> i32
      %sum = scf.for %j = %begin to %end step %c1 iter_args(%a = %f0) -> (f32) : i32 {
        %p = llvm.getelementptr %ids[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %id = llvm.load %p invariant : !llvm.ptr<1> -> i32
        %row = arith.muli %id, %c32 : i32
        %col = arith.muli %lane, %c4 : i32
        %element = arith.addi %row, %col : i32
        %q = llvm.getelementptr %rows[%element] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %v = llvm.load %q invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
        %s = vector.reduction <add>, %v : vector<4xf32> into f32
        %x4 = nvvm.shfl.sync bfly %mask, %s, %c4, %c31 : f32 -> f32
        %s4 = arith.addf %s, %x4 : f32
        %x2 = nvvm.shfl.sync bfly %mask, %s4, %c2, %c31 : f32 -> f32
        %s2 = arith.addf %s4, %x2 : f32
        %x1 = nvvm.shfl.sync bfly %mask, %s2, %c1, %c31 : f32 -> f32
        %s1 = arith.addf %s2, %x1 : f32
        %n = arith.addf %a, %s1 : f32
        scf.yield %n : f32
      }
      %out = llvm.getelementptr %sums[%bag] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %leads = arith.cmpi eq, %lane, %c0 : i32
      scf.if %leads {
        llvm.store %sum, %out : f32, !llvm.ptr<1>
      }
      nvvm.bar.warp.sync %mask : i32
      %again = llvm.load %out : !llvm.ptr<1> -> f32
      %copy = llvm.getelementptr %copies[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %again, %copy : f32, !llvm.ptr<1>
    }
    gpu.return
  }
}
)";

/// What a run left behind.
struct Outcome {
  CUresult result;
  std::string error;
  std::vector<float> sums, copies;
};

class EmulatedModule : public testing::Test {
protected:
  static constexpr int numBags = 100, numRows = 50, width = 32;

  void SetUp() override {
    std::mt19937 random(5);
    offsets.push_back(0);
    for (int bag = 0; bag < numBags; ++bag) {
      float sum = 0;
      for (uint32_t i = random() % 6; i > 0; --i) {
        ids.push_back(static_cast<int32_t>(random() % numRows));
        for (int column = 0; column < width; ++column)
          sum += getWeight(ids.back(), column);
      }
      offsets.push_back(static_cast<int32_t>(ids.size()));
      expected.sums.push_back(sum);
      expected.copies.insert(expected.copies.end(), 8, sum);
    }
    for (int i = 0; i < numRows * width; ++i)
      rows.push_back(getWeight(i / width, i % width));
  }

  /// Whole numbers, whose sums are exact in any order.
  static float getWeight(int row, int column) {
    return static_cast<float>((row * 7 + column * 3) % 23 - 11);
  }

  Outcome run(const std::string &text, int seed = 0) {
    setenv("NEUROSHARD_EMULATOR_SEED", std::to_string(seed).c_str(), 1);
    EmulatorLibrary emulator;
    Outcome outcome;
    outcome.sums.resize(numBags);
    outcome.copies.resize(numBags * 8);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    std::string image = compile(text);
    emulator.check(emulator->moduleLoadData(&module, image.data()));
    emulator.check(emulator->moduleGetFunction(&function, module, "bag_sums"));
    CUdeviceptr pointers[] = {
        emulator.upload(offsets), emulator.upload(ids), emulator.upload(rows),
        emulator.upload(outcome.sums), emulator.upload(outcome.copies)};
    int32_t bags = numBags;
    void *params[] = {&pointers[0], &pointers[1], &pointers[2],
                      &pointers[3], &pointers[4], &bags};
    outcome.result =
        emulator->launchKernel(function, (numBags * 8 + 255) / 256, 1, 1, 256,
                               1, 1, 0, nullptr, params, nullptr);
    outcome.error = emulator.getLastError();
    // A failed kernel takes its context with it.
    EXPECT_EQ(emulator->streamSynchronize(nullptr), outcome.result);
    if (outcome.result == CUDA_SUCCESS) {
      emulator.download(pointers[3], outcome.sums);
      emulator.download(pointers[4], outcome.copies);
    }
    // What was allocated goes with the context.
    emulator.check(emulator->moduleUnload(module));
    return outcome;
  }

  std::vector<int32_t> offsets, ids;
  std::vector<float> rows;
  Outcome expected;
};

TEST_F(EmulatedModule, DoesWhatPlainCodeDoes) {
  for (int seed : {0, 1, 2}) {
    Outcome outcome = run(kBagSums, seed);
    EXPECT_EQ(outcome.result, CUDA_SUCCESS) << outcome.error;
    EXPECT_EQ(outcome.sums, expected.sums);
    EXPECT_EQ(outcome.copies, expected.copies);
  }
}

TEST_F(EmulatedModule, AMissingWarpBarrierShows) {
  Outcome outcome =
      run(replaceOnce(kBagSums, "nvvm.bar.warp.sync %mask : i32", ""));
  EXPECT_EQ(outcome.result, CUDA_SUCCESS) << outcome.error;
  EXPECT_EQ(outcome.sums, expected.sums);
  EXPECT_NE(outcome.copies, expected.copies);
}

TEST_F(EmulatedModule, TheFinderOfRacesFindsNone) {
  setenv("NEUROSHARD_EMULATOR_RACES", "1", 1);
  Outcome outcome = run(kBagSums);
  unsetenv("NEUROSHARD_EMULATOR_RACES");
  EXPECT_EQ(outcome.result, CUDA_SUCCESS) << outcome.error;
  EXPECT_EQ(outcome.copies, expected.copies);
}

TEST_F(EmulatedModule, AMissingWarpBarrierIsARace) {
  setenv("NEUROSHARD_EMULATOR_RACES", "1", 1);
  Outcome outcome =
      run(replaceOnce(kBagSums, "nvvm.bar.warp.sync %mask : i32", ""));
  unsetenv("NEUROSHARD_EMULATOR_RACES");
  EXPECT_EQ(outcome.result, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(outcome.error, HasSubstr("and nothing orders the two"));
}

TEST_F(EmulatedModule, AMaskThatIsTooWideShows) {
  Outcome outcome =
      run(replaceOnce(kBagSums, "%mask = arith.shli %c255, %first",
                      "%mask = arith.subi %c0, %c1"));
  EXPECT_EQ(outcome.result, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(outcome.error, HasSubstr("of lanes 0xffffffff"));
}

TEST_F(EmulatedModule, AMaskOfOtherLanesShows) {
  Outcome outcome =
      run(replaceOnce(kBagSums, "%mask = arith.shli %c255, %first",
                      "%mask = arith.shli %c255, %lane"));
  EXPECT_EQ(outcome.result, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(outcome.error, HasSubstr("kernel bag_sums, block "));
}

TEST_F(EmulatedModule, AWrongShuffleShows) {
  Outcome outcome =
      run(replaceOnce(kBagSums, "%s4, %c2, %c31", "%s4, %c4, %c31"));
  EXPECT_EQ(outcome.result, CUDA_SUCCESS) << outcome.error;
  EXPECT_NE(outcome.sums, expected.sums);
}

TEST_F(EmulatedModule, AMissingGuardShows) {
  Outcome outcome =
      run(replaceOnce(kBagSums, "ult, %bag, %bags", "uge, %bags, %c0"));
  EXPECT_EQ(outcome.result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(outcome.error, HasSubstr("past the end of"));
}

TEST_F(EmulatedModule, AnIdOutsideTheTableShows) {
  ids[17] = numRows;
  Outcome outcome = run(kBagSums);
  EXPECT_EQ(outcome.result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(outcome.error, HasSubstr("past the end of 6400 bytes"));
}

TEST_F(EmulatedModule, AReleasedContextStartsAfresh) {
  ids[17] = numRows;
  EXPECT_EQ(run(kBagSums).result, CUDA_ERROR_ILLEGAL_ADDRESS);
  ids[17] = 0;
  EXPECT_EQ(run(kBagSums).result, CUDA_SUCCESS);
}

TEST(EmulatedModuleErrors, AKernelThatIsNotThere) {
  EmulatorLibrary emulator;
  std::string image = compile(kBagSums);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  emulator.check(emulator->moduleLoadData(&module, image.data()));
  EXPECT_EQ(emulator->moduleGetFunction(&function, module, "bag_sum"),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(emulator->launchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr,
                                   nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  emulator.check(emulator->moduleGetFunction(&function, module, "bag_sums"));
  EXPECT_EQ(emulator->launchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr,
                                   nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(emulator->launchKernel(function, 1, 2, 1, 1, 1, 1, 0, nullptr,
                                   nullptr, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(emulator->launchKernel(function, 1, 1, 1, 1025, 1, 1, 0, nullptr,
                                   nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  emulator.check(emulator->moduleUnload(module));
}

} // namespace
