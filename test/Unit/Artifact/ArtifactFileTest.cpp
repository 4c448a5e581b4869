//===- ArtifactFileTest.cpp - Hashes of an artifact's files ---------------===//
//
// Shows that a change of any byte of a manifest, and of any file that it lists,
// is noticed when the artifact is opened.
//
//===----------------------------------------------------------------------===//

#include "RandomManifest.h"

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"

#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::EndsWith;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

template <typename Work> std::string errorOf(const Work &work) {
  try {
    work();
    return "";
  } catch (const RuntimeError &error) {
    return error.what();
  }
}

class ArtifactFileTest : public testing::Test {
protected:
  ArtifactFileTest() {
    fs::create_directories(folder / "ir");
    std::mt19937 random(3);
    manifest = randomManifest(random);
    manifest.files.clear();
    for (const char *name : {"program0.so", "plan.json", "ir/1-logical.mlir"}) {
      write(name, std::string("content of ").append(name));
      manifest.files[name] = hashOf(readFile(folder / name));
    }
    sealed = sealManifest(writeManifest(manifest));
    write(kManifestFile, sealed);
  }
  ~ArtifactFileTest() override { fs::remove_all(folder); }

  void write(const std::string &name, const std::string &text) const {
    std::ofstream(folder / name, std::ios::trunc) << text;
  }

  const fs::path folder = fs::path(testing::TempDir()) /
                          ("neuroshard_artifact_" + std::to_string(getpid()));
  Manifest manifest;
  std::string sealed;
};

TEST_F(ArtifactFileTest, HashesAreThoseOfTheSpecification) {
  EXPECT_EQ(hashOf(""), "99aa06d3014798d86001c324468d497f");
}

TEST_F(ArtifactFileTest, WhatWasWrittenIsOpened) {
  EXPECT_EQ(openManifest(folder).files, manifest.files);
  EXPECT_EQ(readListed(folder, manifest, "plan.json"), "content of plan.json");
  write("notes.txt", "mine");
  EXPECT_EQ(errorOf([&] { checkArtifact(folder); }), "");
}

TEST_F(ArtifactFileTest, EveryChangedByteOfAManifestIsNoticed) {
  ASSERT_TRUE(isSealed(sealed));
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    ASSERT_FALSE(isSealed(changed)) << i;
  }
  for (size_t length = 0; length < sealed.size(); ++length)
    ASSERT_FALSE(isSealed(std::string_view(sealed).substr(0, length)));
  EXPECT_FALSE(isSealed(sealed + " "));
  EXPECT_FALSE(isSealed(writeManifest(manifest)));
}

TEST_F(ArtifactFileTest, AChangedManifestIsRefused) {
  for (const std::string &text :
       {sealed.substr(1), std::string(), writeManifest(manifest)}) {
    write(kManifestFile, text);
    EXPECT_EQ(errorOf([&] { openManifest(folder); }),
              "'" + (folder / kManifestFile).string() +
                  "' is not as this version of neuroshard-compile wrote it, "
                  "but damaged or changed: expected its own hash at its end (" +
                  std::to_string(text.size()) +
                  " bytes); compile the model again");
  }
}

TEST_F(ArtifactFileTest, FoldersOfOtherThingsAreRefused) {
  fs::remove(folder / kManifestFile);
  EXPECT_THAT(errorOf([&] { openManifest(folder); }),
              testing::AllOf(HasSubstr("cannot read '"),
                             EndsWith("; expected the folder of an artifact "
                                      "that neuroshard-compile or 'neuroshard "
                                      "freeze' wrote")));
  write(".metadata", "of torch.distributed.checkpoint");
  EXPECT_EQ(errorOf([&] { openManifest(folder); }),
            "'" + folder.string() +
                "' is a checkpoint; expected the folder of an artifact: make "
                "one of its tables by ns.freeze() or 'neuroshard freeze'");
}

TEST_F(ArtifactFileTest, ChangedAndMissingFilesAreRefused) {
  for (const auto &[name, hash] : manifest.files) {
    std::string text = readFile(folder / name);
    for (const std::string &other :
         {text + "\n", text.substr(1), std::string()}) {
      write(name, other);
      EXPECT_THAT(errorOf([&] { checkArtifact(folder); }),
                  testing::AllOf(HasSubstr("/" + name +
                                           "' is not the file "
                                           "that manifest.json was written "
                                           "with"),
                                 EndsWith("; compile the model again")));
    }
    fs::remove(folder / name);
    EXPECT_THAT(errorOf([&] { checkArtifact(folder); }),
                HasSubstr("/" + name + "': No such file"));
    write(name, text);
  }
  EXPECT_THAT(errorOf([&] { readListed(folder, manifest, "notes.txt"); }),
              HasSubstr("manifest.json' lists no file 'notes.txt'"));
}

TEST_F(ArtifactFileTest, FilesHaveALimit) {
  fs::resize_file(folder / "plan.json", (size_t{1} << 30) + 1);
  EXPECT_THAT(errorOf([&] { checkArtifact(folder); }),
              EndsWith("plan.json': expected at most 1073741824 bytes, found "
                       "1073741825"));
}

TEST_F(ArtifactFileTest, TheFilesOfAnArtifactOfAnyVersion) {
  EXPECT_EQ(filesOfArtifact(folder),
            (std::set<std::string>{"manifest.json", "plan.json", "program0.so",
                                   "ir/1-logical.mlir"}));
  write(kManifestFile, R"({"schema": "neuroshard.manifest/1"})");
  EXPECT_EQ(filesOfArtifact(folder), std::set<std::string>{"manifest.json"});
  for (const char *other : {"{}", "[", R"({"schema": "manifest/1"})"}) {
    write(kManifestFile, other);
    EXPECT_EQ(filesOfArtifact(folder), std::nullopt);
  }
  EXPECT_EQ(filesOfArtifact(folder / "none"), std::nullopt);
}

/// Names in a manifest may have control characters, which a terminal obeys.
TEST(RuntimeErrorTest, ControlCharactersAreShown) {
  EXPECT_EQ(errorOf([] { fail("table 'a\x1b[31m\n'"); }),
            "table 'a\\x1b[31m\\x0a'");
}

} // namespace
