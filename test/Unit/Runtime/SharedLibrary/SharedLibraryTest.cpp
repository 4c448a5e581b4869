//===- SharedLibraryTest.cpp - The library as drivers load it -------------===//
//
// Shows that an artifact directory opens and runs when the runtime was loaded
// privately (as Python's ctypes does), and that it exports the C interface
// only. This program is not linked with the runtime.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fs = std::filesystem;

namespace {

const char *const kManifest = R"({
  "schema": "neuroshard.manifest/7", "target_cpu": "generic", "devices": 1,
  "optimizer_semantics": "exact",
  "tables": [{"name": "t", "rows": 3, "dim": 4, "element_type": "f32",
              "optimizer": null}],
  "exchanges": [{"input": "ids", "id_type": "i64", "weighted": false,
    "features": ["f"],
    "lookups": [{"table": 0, "feature": 0, "pooling": "sum",
      "weighted": false, "padding_idx": null, "result_type": "f32"}]}],
  "shards": [{"name": "t0", "table": 0, "rows": [0, 3], "cols": [0, 4],
              "devices": [0], "tier": "hbm"}],
  "functions": {},
  "layout": [{
    "buckets": [{"lookup": 0, "rows": [0, 3]}],
    "devices": [{"streams": [0], "own_streams": 1, "entries": [
      {"kernel": 0, "slot": 0, "lookup": 0, "stream": 0, "cols": [0, 4],
       "column": 0, "replicated": false, "relayed": false}]}],
    "results": [{"replicated": false, "parts": [[0, 0]],
      "segments": [{"cols": [0, 4], "parts": [[0, 0]]}],
      "relayed": [], "relayed_segments": []}],
    "relays": []}],
  "programs": [{"library": "program0.so"}],
  "bindings": [{"program": 0, "slots": [0], "lookups": [[0, 0, 0]]}]
})";

class SharedLibrary : public testing::Test {
protected:
  void SetUp() override {
    runtime = dlopen(RUNTIME_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(runtime) << dlerror();
    directory = fs::path(testing::TempDir()) / "neuroshard_shared_library_test";
    fs::create_directories(directory);
    fs::copy_file(TINY_PROGRAM, directory / "program0.so",
                  fs::copy_options::overwrite_existing);
    seal();
  }
  void TearDown() override { fs::remove_all(directory); }

  /// Writes the manifest with the hash of the program as it is now.
  void seal(std::string text = kManifest) const {
    std::string program =
        neuroshard::readFile(fs::path(directory) / "program0.so");
    text.erase(text.rfind('}'));
    text += ", \"files\": {\"program0.so\": \"" + neuroshard::hashOf(program) +
            "\"}}";
    std::ofstream(directory / "manifest.json", std::ios::trunc)
        << neuroshard::sealManifest(text);
  }

  template <typename Function> Function *get(Function *, const char *name) {
    void *symbol = dlsym(runtime, name);
    EXPECT_TRUE(symbol) << name;
    return reinterpret_cast<Function *>(symbol);
  }

  void *runtime = nullptr;
  fs::path directory;
};

#define NSRT(name) get(static_cast<decltype(&name)>(nullptr), #name)

TEST_F(SharedLibrary, RunsAnArtifact) {
  nsrt_world *world = NSRT(nsrt_world_open)(directory.c_str(), 1);
  ASSERT_TRUE(world) << NSRT(nsrt_last_error)();
  float table[12];
  for (int i = 0; i < 12; ++i)
    table[i] = static_cast<float>(i);
  EXPECT_EQ(NSRT(nsrt_table_write)(world, 0, 0, 3, table), 0);
  int64_t ids[] = {0, 2, 1}, numIds = 3, offsets[] = {0, 2, 2, 3};
  int64_t numOffsets = 4;
  float out[12];
  void *args[] = {NSRT(nsrt_world_device)(world, 0),
                  ids,
                  &numIds,
                  offsets,
                  &numOffsets,
                  out};
  void **all[] = {args};
  EXPECT_EQ(NSRT(nsrt_invoke_all)(world, "forward", all), 0);
  EXPECT_THAT(out, testing::ElementsAre(8, 10, 12, 14, 0, 0, 0, 0, 4, 5, 6, 7));
  ids[1] = 3;
  EXPECT_NE(
      NSRT(nsrt_invoke)(NSRT(nsrt_world_device)(world, 0), "forward", args), 0);
  EXPECT_STREQ(NSRT(nsrt_last_error)(),
               "rank 0: feature \"f\", bag 0, position 1 (id 1 "
               "of the input): id 3 is out of range for table \"t\" with 3 "
               "rows");
  EXPECT_THAT(out, testing::Each(0.0f));
  NSRT(nsrt_world_close)(world);
}

TEST_F(SharedLibrary, HidesItsInside) {
  EXPECT_TRUE(dlsym(runtime, "nsrt_route"));
  // neuroshard::checkManifest(Manifest const &)
  EXPECT_FALSE(
      dlsym(runtime, "_ZN10neuroshard13checkManifestERKNS_8ManifestE"));
}

TEST_F(SharedLibrary, BrokenLibrariesAreNamed) {
  auto open = NSRT(nsrt_world_open);
  auto error = NSRT(nsrt_last_error);
  std::ofstream(directory / "program0.so", std::ios::trunc) << "not a library";
  EXPECT_EQ(open(directory.c_str(), 1), nullptr);
  EXPECT_THAT(error(), testing::AllOf(
                           testing::HasSubstr("program0.so' is not the file "
                                              "that manifest.json was written "
                                              "with"),
                           testing::EndsWith("; compile the model again")));
  seal();
  EXPECT_EQ(open(directory.c_str(), 1), nullptr);
  EXPECT_THAT(error(), testing::StartsWith("cannot load program library: "));
  fs::copy_file(RUNTIME_LIBRARY, directory / "program0.so",
                fs::copy_options::overwrite_existing);
  seal();
  EXPECT_EQ(open(directory.c_str(), 1), nullptr);
  EXPECT_THAT(error(),
              testing::HasSubstr("does not export neuroshard_program"));
}

TEST_F(SharedLibrary, LibraryNamesStayInTheDirectory) {
  std::string text = kManifest;
  text.replace(text.find("program0.so"), 11, "../p.so");
  seal(text);
  EXPECT_EQ(NSRT(nsrt_world_open)(directory.c_str(), 1), nullptr);
  EXPECT_THAT(NSRT(nsrt_last_error)(),
              testing::EndsWith(
                  "manifest.json': manifest: $.programs[0].library: expected "
                  "the name of a file beside the manifest, found \"../p.so\""));
}

} // namespace
