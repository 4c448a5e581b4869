//===- FilesTest.cpp - Files are read and written whole or not at all -----===//

#include "neuroshard/Serialization/Files.h"
#include "Support.h"
#include "neuroshard/Serialization/Json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

TEST(FilesTest, MissingFilesAndFolders) {
  EXPECT_THAT(text(readWorkload("does/not/exist.json").error()),
              HasSubstr("does/not/exist.json: cannot open: No such file"));
  EXPECT_THAT(
      text(readPlan(std::string(NEUROSHARD_SOURCE_DIR) + "/workloads").error()),
      HasSubstr("expected a file, got a directory"));
}

TEST(FilesTest, FilesHaveALimit) {
  std::string path = testing::TempDir() + "neuroshard_json_test.json";
  std::ofstream(path) << "{}";
  std::filesystem::resize_file(path, (size_t{1} << 30) + 1); // takes no disk
  EXPECT_EQ(text(readWorkload(path).error()),
            path + ": is too large: expected at most 1073741824 bytes");
  EXPECT_EQ(text(readPlan(path).error()), text(readWorkload(path).error()));
  std::filesystem::remove(path);
  // It has no end.
  EXPECT_EQ(text(readPlan("/dev/zero").error()),
            "/dev/zero: is too large: expected at most 1073741824 bytes");
}

TEST(FilesTest, WriteFileReplacesAndReportsFailure) {
  std::string path = testing::TempDir() + "neuroshard_json_test.json";
  ASSERT_TRUE(writeFile(path, "one").has_value());
  ASSERT_TRUE(writeFile(path, "two").has_value());
  EXPECT_EQ(*readFile(path), "two");
  std::filesystem::remove(path);
  EXPECT_THAT(text(writeFile("does/not/exist/x", "y").error()),
              HasSubstr("does/not/exist/x: cannot write"));
}

/// A new folder that is removed with its contents.
struct Folder {
  fs::path path = fs::path(testing::TempDir()) /
                  ("neuroshard_files_" + std::to_string(getpid()));
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char *name) const { return path / name; }
};

TEST(FilesTest, WriteFileKeepsTheMode) {
  Folder folder;
  std::string path = folder / "secret.json";
  ASSERT_TRUE(writeFile(path, "one").has_value());
  fs::permissions(path, fs::perms(0600));
  ASSERT_TRUE(writeFile(path, "two").has_value());
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0600));
  EXPECT_EQ(*readFile(path), "two");
}

TEST(FilesTest, WriteFileFollowsSymbolicLinks) {
  Folder folder;
  fs::create_directory(folder / "inner");
  fs::create_symlink("inner/middle", folder / "link");
  fs::create_symlink("file", folder / "inner/middle");
  for (const char *content : {"made", "replaced"}) {
    ASSERT_TRUE(writeFile(folder / "link", content).has_value());
    EXPECT_EQ(*readFile(folder / "inner/file"), content);
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_TRUE(fs::is_symlink(folder / "inner/middle"));
  }
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_THAT(text(writeFile(folder / "a", "x").error()),
              HasSubstr("cannot write: Too many levels"));
}

TEST(FilesTest, WriteFileRefusesWhatIsNoFile) {
  Folder folder;
  std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  for (const char *name : {"pipe", "link", "", "none/"}) {
    Expected<void> written = writeFile(folder / name, "x");
    ASSERT_FALSE(written.has_value()) << name;
    EXPECT_THAT(text(written.error()), HasSubstr("cannot write: ")) << name;
    EXPECT_EQ(text(checkWritable(folder / name).error()),
              text(written.error()));
  }
  EXPECT_THAT(text(writeFile(pipe, "x").error()),
              HasSubstr("pipe: cannot write: something other than a file"));
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_THAT(text(writeFile("", "x").error()), HasSubstr("empty text"));
  size_t left = 0;
  for ([[maybe_unused]] const auto &entry : fs::directory_iterator(folder.path))
    ++left;
  EXPECT_EQ(left, 2u);
}

} // namespace
