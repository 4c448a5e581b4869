//===- ManifestTest.cpp - Manifests survive writing and reading -----------===//
//
// Shows that a manifest that is written and read is the same, whatever it says,
// and that norms are exchanged by tables, not by shards.
//
//===----------------------------------------------------------------------===//

#include "RandomManifest.h"

#include "neuroshard/Artifact/Error.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

TEST(Manifest, RoundTrips) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Manifest manifest = randomManifest(random);
    std::string text = writeManifest(manifest);
    Manifest read = parseManifest(text);
    ASSERT_EQ(writeManifest(read), text);
    ASSERT_TRUE(read.layouts == makeLayouts(manifest));
    ASSERT_EQ(read.numDevices, manifest.numDevices);
    for (size_t i = 0; i < manifest.tables.size(); ++i)
      ASSERT_EQ(read.tables[i].optimizer, manifest.tables[i].optimizer);
    ASSERT_EQ(read.tablesWithNormExchange(), manifest.tablesWithNormExchange());
  }
}

TEST(Manifest, LibrariesLieBesideIt) {
  std::mt19937 random(7);
  Manifest manifest = randomManifest(random);
  manifest.reference = {"reference.so", {}};
  parseManifest(writeManifest(manifest));
  for (const char *name : {"../evil.so", "/tmp/evil.so", "", "a/b.so"}) {
    Manifest other = manifest;
    other.reference->library = name;
    EXPECT_THROW(parseManifest(writeManifest(other)), RuntimeError) << name;
    other = manifest;
    other.programs.front().library = name;
    EXPECT_THROW(parseManifest(writeManifest(other)), RuntimeError) << name;
  }
}

TEST(Manifest, NestingHasALimit) {
  std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string &text : {deep, "{\"schema\": " + deep + "}"})
    try {
      parseManifest(text);
      FAIL() << "accepted";
    } catch (const RuntimeError &error) {
      EXPECT_STREQ(error.what(), "manifest: expected lists and objects at "
                                 "most 64 deep inside each other");
    }
}

TEST(Manifest, OneColumnCutMakesAllShardsOfATableExchangeNorms) {
  Manifest manifest;
  manifest.numDevices = 2;
  Optimizer rowwise;
  rowwise.kind = OptimizerKind::RowWiseAdagrad;
  manifest.tables = {{"a", 100, 8, ElementType::F32, rowwise},
                     {"b", 100, 8, ElementType::F32, rowwise}};
  manifest.tables[0].optimizer->kind = OptimizerKind::PartialRowWiseAdam;
  manifest.shards = {{"whole rows", 0, {0, 90}, {0, 8}, {0}},
                     {"left", 0, {90, 100}, {0, 4}, {0}},
                     {"right", 0, {90, 100}, {4, 8}, {1}},
                     {"other", 1, {0, 100}, {0, 8}, {1}}};
  EXPECT_EQ(manifest.tablesWithNormExchange(),
            (std::vector<bool>{true, false}));
  manifest.optimizerSemantics = OptimizerSemantics::PerShard;
  EXPECT_EQ(manifest.tablesWithNormExchange(),
            (std::vector<bool>{false, false}));
}

TEST(Manifest, NamesThatAreNotUtf8AreReplaced) {
  std::mt19937 random(1);
  Manifest manifest = randomManifest(random);
  manifest.tables[0].name = "caf\xe9";
  EXPECT_EQ(parseManifest(writeManifest(manifest)).tables[0].name,
            "caf\xef\xbf\xbd");
}

} // namespace
