//===- ManifestTest.cpp - Wrong artifacts are refused with one error ------===//
//
// Shows that every inconsistency of a manifest, and every program that does not
// belong to it, has one error; and that no damaged manifest crashes the reader.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::test;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

namespace {

class ManifestTest : public testing::Test {
protected:
  ManifestTest()
      : model(makeModel(Optimizer::RowwiseAdagrad)),
        manifest(
            makeManifest(model, makePlan(model, PlanKind::RowColumn, 3), 3)),
        programs(makePrograms(model, manifest)) {}

  /// The error of opening a manifest text, "" if there is none.
  std::string open(const std::string &text) {
    nsrt_world *world =
        nsrt_world_create(text.c_str(), programs.pointers.data(),
                          static_cast<int32_t>(programs.pointers.size()), 1);
    if (!world)
      return nsrt_last_error();
    nsrt_world_close(world);
    return "";
  }

  std::string openWith(const char *pointer, const json &value) {
    json changed = manifest;
    changed[json::json_pointer(pointer)] = value;
    return open(changed.dump());
  }

  std::string openWithout(const char *parent, const char *field) {
    json changed = manifest;
    changed[json::json_pointer(parent)].erase(field);
    return open(changed.dump());
  }

  Model model;
  json manifest;
  Programs programs;
};

TEST_F(ManifestTest, TheUnchangedOneOpens) {
  EXPECT_EQ(open(manifest.dump()), "");
}

TEST_F(ManifestTest, FieldErrorsNameTheirPlace) {
  struct {
    const char *pointer;
    json value;
    const char *message;
  } cases[] = {
      {"/schema", "neuroshard.manifest/9",
       "$.schema: expected one of \"neuroshard.manifest/7\", found "
       "\"neuroshard.manifest/9\""},
      {"/shards/0/tier", "dram",
       "$.shards[0]: expected a cache for a shard in tier dram"},
      {"/shards/0/cache_rows", 33,
       "$.shards[0]: expected a sound cache: a cache is for shards in tier "
       "dram or ssd, found one in tier hbm"},
      {"/shards/0/tier", "ssd",
       "$.shards[0]: expected a sound cache: the cache of a shard of"},
      {"/devices", 0, "$.devices: expected an integer from 1 to 65536"},
      {"/devices", 4, "$.bindings: expected 4 bindings, one per device"},
      {"/tables", 3, "$.tables: expected an array, found 3"},
      {"/tables/1/rows", -5, "$.tables[1].rows: expected an integer from 1"},
      {"/tables/1/rows", 2.5, "$.tables[1].rows: expected an integer from 1"},
      {"/tables/1/rows", 18446744073709551615u, "$.tables[1].rows: expected"},
      {"/tables/0/element_type", "f64",
       "expected one of \"f32\", \"f16\", \"bf16\", \"int8\", \"int4\", "
       "\"fp8\", "
       "found \"f64\""},
      {"/tables/0/optimizer/kind", "adamax", "$.tables[0].optimizer.kind"},
      {"/tables/0/optimizer/weight_decay_mode", "l1",
       "$.tables[0].optimizer.weight_decay_mode"},
      {"/tables/0/optimizer/l1_penalty", 0.5,
       "$.tables[0].optimizer.l1_penalty: expected another value: "
       "rowwise_adagrad has no l1_penalty; it has eps"},
      {"/tables/0/optimizer/eta", 0.5,
       "$.tables[0].optimizer.eta: expected another value: "
       "rowwise_adagrad has no eta; it has eps"},
      {"/tables/0/optimizer/max_gradient", -1,
       "$.tables[0].optimizer.max_gradient: expected a number in [0, 1e30]"},
      {"/optimizer_semantics", "both", "$.optimizer_semantics"},
      {"/wire_type", "f8",
       "$.wire_type: expected f32, f16, bf16, int8 or fp8, or one of them for "
       "results and "
       "another for gradients, such as f32/bf16, found \"f8\""},
      {"/wire_type", "f32/f8",
       "$.wire_type: expected f32, f16, bf16, int8 or fp8, or one"},
      {"/wire_type", nullptr, "$.wire_type: expected"},
      {"/groups",
       {{0, 1}, {2}},
       "$.groups: expected groups of one size that name every device once"},
      {"/groups", {{0}, {1}}, "$.groups: expected groups of one size"},
      {"/groups", {{0}, {1}, {1}}, "$.groups: expected groups of one size"},
      {"/groups", {{0, 1, 3}}, "$.groups[0][2]: expected an integer from 0"},
      {"/groups", json::array(), "$.groups: expected groups of one size"},
      {"/groups", 2, "$.groups: expected an array, found 2"},
      {"/exchanges/0/lookups/2/table", 9,
       "$.exchanges[0].lookups[2].table: expected an integer from 0 to 3, "
       "found 9"},
      {"/exchanges/0/lookups/1/padding_idx", 23,
       "$.exchanges[0].lookups[1].padding_idx: expected an integer from 0 to "
       "22, found 23"},
      {"/exchanges/1/lookups/0/weighted", true,
       "expected false, as the exchange has no weights"},
      {"/exchanges/0/features", json::array(), "$.exchanges[0].features"},
      {"/exchanges/0/features/1", "f0",
       "$.exchanges[0].features: expected each feature once"},
      {"/tables/0/optimizer/beta1", 1,
       "$.tables[0].optimizer.beta1: expected a number in [0, 1), found 1"},
      {"/tables/0/optimizer/eps", -1,
       "$.tables[0].optimizer.eps: expected a number in [0, 1e30], found -1"},
      {"/exchanges/0/id_type", "u64", "expected one of \"i32\", \"i64\""},
      {"/shards/0/rows", {0, 1, 2}, "$.shards[0].rows: expected [begin, end]"},
      {"/shards/0/rows", {3, 3}, "expected [begin, end] with begin < end"},
      {"/shards/0/cols", {0, 99}, "$.shards[0].cols[1]: expected an integer"},
      {"/shards/0/devices", {3}, "$.shards[0].devices[0]"},
      {"/shards/0/devices", json::array(), "at least one device"},
      {"/bindings/0/lookups/0", {0, 0}, "expected [exchange, lookup, slot]"},
      {"/bindings/0/program", 3, "$.bindings[0].program"},
  };
  for (const auto &test : cases)
    EXPECT_THAT(openWith(test.pointer, test.value), HasSubstr(test.message))
        << test.pointer;
}

/// Steps run by the layout of the manifest, so what they would read or write
/// elsewhere is refused.
TEST_F(ManifestTest, LayoutsMustFitThePlan) {
  EXPECT_THAT(openWithout("", "layout"), HasSubstr("a field \"layout\""));
  const std::string entry = "/layout/0/devices/0/entries/0";
  struct {
    std::string pointer;
    json value;
    const char *message;
  } cases[] = {
      {"/layout", json::array(), "$.layout: expected 2 layouts"},
      {"/layout/0/devices", json::array(), "$.layout[0].devices: expected 3"},
      {"/layout/0/buckets/0/lookup", 7, "buckets[0].lookup: expected"},
      {"/layout/0/buckets/0/rows", {0, 99}, "buckets[0].rows[1]: expected"},
      {"/layout/0/devices/0/streams/0", 99, "streams[0]: expected"},
      {"/layout/0/devices/0/entries", json::array(), "entries: expected"},
      {"/layout/0/devices/0/entries/1/kernel", 0,
       "each lookup of the device once"},
      {entry + "/slot", 1, "slot, lookup, columns and stream of shard"},
      {entry + "/stream", 1, "slot, lookup, columns and stream of shard"},
      {entry + "/cols", {1, 2}, "slot, lookup, columns and stream of shard"},
      {entry + "/replicated", true, "slot, lookup, columns and stream of"},
      {entry + "/relayed", true, "relayed: expected false"},
      {entry + "/column", 1, "columns of pooled lookups side by side"},
      {"/layout/0/results/0/replicated", true, "replicated: expected false"},
      {"/layout/0/results/0/parts", json::array(), "parts: expected"},
      {"/layout/0/results/0/parts/0", {0, 0, 0}, "parts[0]: expected 2"},
      {"/layout/0/results/0/segments", json::array(),
       "segments: expected each column of the table once"},
      {"/layout/0/results/0/segments/0/parts", json::array(),
       "parts: expected at least one part"},
      {"/layout/0/results/0/relayed", json::array({0}), "relayed[0]"},
      {"/layout/0/relays", json::array({0, 0}), "a relay for each group"},
  };
  for (const auto &test : cases)
    EXPECT_THAT(openWith(test.pointer.c_str(), test.value),
                HasSubstr(test.message))
        << test.pointer;
}

TEST_F(ManifestTest, MissingFields) {
  EXPECT_EQ(openWithout("/tables/2", "dim"),
            "manifest: $.tables[2]: expected a field \"dim\", found none");
  EXPECT_EQ(openWithout("", "shards"),
            "manifest: $: expected a field \"shards\", found none");
  EXPECT_THAT(openWithout("/tables/0/optimizer", "initial_accumulator"),
              HasSubstr("$.tables[0].optimizer: expected a field"));
  EXPECT_EQ(openWithout("", "wire_type"), ""); // f32
  EXPECT_EQ(openWithout("/tables/0/optimizer", "weight_decay_mode"), "");
  EXPECT_EQ(openWithout("/tables/0/optimizer", "l1_penalty"), "");
  EXPECT_EQ(openWithout("/tables/0/optimizer", "eta"), "");
  EXPECT_EQ(openWithout("/tables/0/optimizer", "max_gradient"), "");
  EXPECT_EQ(openWithout("/tables/0/optimizer", "stochastic_rounding"), "");
}

TEST_F(ManifestTest, ShiftedRowOffsetLeavesAHole) {
  json changed = manifest;
  ASSERT_EQ(changed["shards"][0]["rows"], json({0, 12}));
  changed["shards"][0]["rows"] = {1, 12};
  EXPECT_THAT(open(changed.dump()),
              HasSubstr("$.tables[0] (\"user\"): its shards cover 366 of 370 "
                        "elements"));
  changed["shards"][0]["rows"] = {0, 13};
  EXPECT_THAT(open(changed.dump()), HasSubstr("overlap with $.shards["));
}

TEST_F(ManifestTest, SwappedShardsAreFound) {
  json changed = manifest;
  std::swap(changed["bindings"][0]["slots"][0],
            changed["bindings"][2]["slots"][0]);
  EXPECT_THAT(open(changed.dump()), HasSubstr("is not on device"));
  changed = manifest; // two slots of one device, of different tables
  json &slots = changed["bindings"][0]["slots"];
  ASSERT_NE(changed["shards"][static_cast<size_t>(slots.front())]["table"],
            changed["shards"][static_cast<size_t>(slots.back())]["table"]);
  std::swap(slots.front(), slots.back());
  EXPECT_THAT(open(changed.dump()), HasSubstr("the lookup reads table"));
}

TEST_F(ManifestTest, BindingsMustBeComplete) {
  json changed = manifest;
  changed["bindings"][0]["lookups"].erase(0);
  EXPECT_THAT(open(changed.dump()),
              HasSubstr("$.bindings[0].lookups: expected ["));
  changed = manifest;
  changed["bindings"][0]["lookups"].push_back(
      changed["bindings"][0]["lookups"][0]);
  EXPECT_THAT(open(changed.dump()), HasSubstr("is there twice"));
  changed = manifest;
  changed["bindings"][0]["slots"] = json::array();
  changed["bindings"][0]["lookups"] = json::array();
  EXPECT_THAT(open(changed.dump()), HasSubstr("does not bind it to a slot"));
}

TEST_F(ManifestTest, CopiesAreBoundOnceOnTheirDevices) {
  EXPECT_THAT(openWith("/shards/0/devices", {0, 2}),
              HasSubstr("device 0 does not bind it to a slot"));
  EXPECT_THAT(openWith("/shards/0/devices", {2, 2}),
              HasSubstr("names a device more than once"));
}

TEST_F(ManifestTest, ProgramsMustFit) {
  nsrt_program &program = programs.all[2]->program;
  nsrt_slot_entry &slot = programs.all[2]->slots[0];
  nsrt_lookup_entry &lookup = programs.all[2]->lookups[0];
  auto expectError = [&](auto &field, auto value, const char *message) {
    auto kept = std::exchange(field, value);
    EXPECT_THAT(open(manifest.dump()), HasSubstr(message));
    field = kept;
  };
  expectError(program.version, 1,
              "expected interface version 9 of compiled programs, found 1; "
              "compile the model again");
  expectError(program.num_slots, 0, "number of slots");
  expectError(program.num_lookups, 1, "number of lookups");
  expectError(slot.dim, slot.dim + 1, "slot 0 (shard \"shard0\") columns");
  expectError(slot.row_bytes, 8, "bytes of a row");
  expectError(slot.state_rows, 0, "states per row");
  expectError(slot.state_elements, 1, "states per element");
  expectError(slot.weighted, 1 - slot.weighted, "weighted flag");
  expectError(slot.apply, nullptr, "expected a reduce and an apply kernel");
  expectError(slot.update, updateKernel(4, Element::F32, Optimizer::Sgd, true),
              "found another set of kernels");
  expectError(lookup.id_bytes, 8, "lookup 0 id bytes");
  expectError(lookup.pooled, 0, "lookup 0 pooled flag");
  expectError(lookup.weighted, 1 - lookup.weighted, "lookup 0 weighted flag");
  expectError(lookup.slot, 1, "lookup 0 slot");
  expectError(lookup.forward, nullptr, "has no forward kernel");
  programs.pointers.pop_back();
  EXPECT_EQ(open(manifest.dump()), "the manifest has 3 programs, found 2");
}

TEST_F(ManifestTest, CopiesOfATableDriftAlike) {
  Model sgd = makeModel(Optimizer::Sgd);
  std::vector<ShardPlace> plan = makePlan(sgd, PlanKind::Row, 3);
  for (ShardPlace &shard : plan) {
    shard.devices = {0, 2};
    shard.syncEvery = shard.table == plan[0].table ? 5 : 0;
  }
  ASSERT_EQ(plan[0].table, plan[1].table);
  auto parse = [&] {
    try {
      neuroshard::parseManifest(writeManifest(describe(sgd, plan, 3)));
      return std::string();
    } catch (const std::exception &error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(parse(), "");
  plan[1].syncEvery = 6;
  EXPECT_THAT(parse(), HasSubstr("must have the sync_every of the other shards "
                                 "of its table, 5, got: 6"));
  plan[1].syncEvery = 5;
  plan[1].devices = {0, 1, 2};
  EXPECT_THAT(parse(), HasSubstr("must have as many copies as the other shards "
                                 "of its table, since they drift: 2, got: 3"));
  plan[1].devices = {0, 2};
  neuroshard::Manifest counted = describe(sgd, plan, 3);
  counted.tables[static_cast<size_t>(plan[0].table)].optimizer->kind =
      neuroshard::OptimizerKind::RowWiseAdagradWithCounter;
  EXPECT_THAT(open(writeManifest(counted)),
              HasSubstr("optimizer counts steps of rows cannot drift"));
}

TEST_F(ManifestTest, TooLargeForTheMachine) {
  neuroshard::Manifest changed =
      describe(model, makePlan(model, PlanKind::TableWise, 3), 3);
  int64_t rows = int64_t{1} << 32, dim = 1 << 20; // 8 PiB of bf16
  auto resize = [&](int64_t count) {
    changed.tables[2].rows = count;
    changed.tables[2].dim = dim;
    changed.shards[2].rows = {0, count};
    changed.shards[2].cols = {0, dim};
  };
  resize(rows);
  EXPECT_THAT(open(writeManifest(changed)),
              AllOf(HasSubstr("the shards of all devices need 8388624.0 GiB"),
                    HasSubstr("GiB of memory")));
  resize(2 * rows);
  EXPECT_EQ(
      open(writeManifest(changed)),
      "manifest: shard \"shard2\" has 8589934592 rows; at most 2^32 work");
}

TEST_F(ManifestTest, DamagedTextNeverCrashes) {
  std::string text = manifest.dump();
  for (size_t length = 0; length < text.size(); length += 7)
    EXPECT_THAT(open(text.substr(0, length)),
                HasSubstr("manifest: not valid JSON"));
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i)
      damaged[random() % damaged.size()] =
          "0123456789-{}[]\",:nxe"[random() % 21];
    refused += !open(damaged).empty();
  }
  EXPECT_GT(refused, 1500);
}

TEST(Directory, MissingFilesAreNamed) {
  EXPECT_EQ(nsrt_world_open("/nonexistent/artifact", 1), nullptr);
  EXPECT_STREQ(
      nsrt_last_error(),
      "cannot read '/nonexistent/artifact/manifest.json': No such file or "
      "directory; expected the folder of an artifact that neuroshard-compile "
      "or 'neuroshard freeze' wrote");
}

} // namespace
