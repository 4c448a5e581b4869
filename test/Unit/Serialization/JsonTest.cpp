//===- JsonTest.cpp - Both schemas round-trip; bad files name the place ---===//

#include "neuroshard/Serialization/Json.h"
#include "Support.h"
#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Files.h"
#include "neuroshard/Serialization/SearchJson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

std::string sourceFile(const std::string &path) {
  return std::string(NEUROSHARD_SOURCE_DIR) + "/" + path;
}

/// A workload text with one place to break.
std::string workloadJson(const std::string &table,
                         const std::string &rest = "") {
  return R"({"schema": "neuroshard.workload.v1", "batch": {"global_size": 8},
    "tables": [)" +
         table + R"(], "features": [])" + rest + "}";
}

std::string errorOf(const std::string &json) {
  Expected<ShardingProblem> parsed = parseWorkload(json);
  return parsed ? "no error" : text(parsed.error());
}

/// Uses every field of the schema with a value that is not its default.
ShardingProblem everything() {
  ShardingProblem problem = twoTables("2x2xA100-40GB");
  problem.topology.hosts[0].disk = {5'000'000'000'000, 2e6, 13.5};
  problem.topology.hosts[1].disk.bytes = 7;
  problem.source = "a test; \"quoted\", ünïcode";
  problem.batch = {96, IdType::I32, ElementType::F16, WireFormat::BF16, 3, 4};
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.target = Target::TorchRec19;
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  problem.cacheLoadFactor = 0.2;
  Table &table = problem.tables[0];
  table.elementType = ElementType::BF16;
  table.optimizer = {OptimizerKind::Adam,       1e-7, 0.8, 0.99, 0, 0.01,
                     WeightDecayMode::Decoupled};
  table.hashed = true;
  AccessStatistics access;
  access.batch = 4096;
  access.reuse[0] = 0.1;
  access.reuse[16] = 0.9;
  access.rowMass = {{0.1, 1.0 / 3}, {1, 1}};
  table.access = access;
  access.rowsByUse = true;
  problem.tables[1].access = access;
  Feature &feature = problem.features[1];
  feature = {"f", 1, Pooling::None, 2.5, 7.75, 0.3, 40, true, true};
  Constraints &constraints = problem.constraints;
  constraints.pins = {{0, {0, 1}}};
  constraints.forbids = {{1, {3}}};
  addTable(problem, makeTable("c", 10, 4), 1);
  addTable(problem, makeTable("d", 10, 4), 1);
  constraints.coLocate = {{2, 3}};
  constraints.separate = {{0, 2}};
  constraints.tables = {
      {0, {ShardingKind::TableWise, ShardingKind::TableRowWise}, 8}};
  constraints.reserves = {1, std::nullopt, 3};
  constraints.fixedShards = {makeShard("hand", "b", 0, 500, 0, 8, {1})};
  constraints.fixedShards[0].tier = Tier::Dram;
  return problem;
}

TEST(JsonTest, WorkloadRoundTripsExactly) {
  ShardingProblem problem = everything();
  ASSERT_EQ(text(check(problem)), "");
  std::string json = writeWorkload(problem);
  Expected<ShardingProblem> again = parseWorkload(json);
  ASSERT_TRUE(again.has_value()) << text(again.error());
  EXPECT_EQ(*again, problem);
  EXPECT_EQ(writeWorkload(*again), json);
}

TEST(JsonTest, TiersOfTablesRoundTripAndAreNamed) {
  ShardingProblem problem = twoTables("2xA100-40GB");
  problem.constraints.tables = {
      {.table = 0, .cacheShare = 0.25, .tier = Tier::Ssd},
      {.table = 1, .cacheShare = 0.5}};
  std::string json = writeWorkload(problem);
  EXPECT_EQ(*parseWorkload(json), problem);
  json.replace(json.find("\"ssd\""), 5, "\"tape\"");
  EXPECT_EQ(errorOf(json), "constraints.tables[0].tier: expected dram or ssd, "
                           "got: 'tape'");
}

TEST(JsonTest, PlanRoundTripsExactly) {
  ShardingProblem problem = twoTables();
  ShardingPlan plan =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 16, {0, 1}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  plan.shards[1].tier = Tier::Dram;
  plan.shards[1].route = Route::Relay;
  plan.shards[0].syncEvery = 100;
  plan.optimizerSemantics = OptimizerSemantics::PerShard;
  plan.provenance = {"default", "step", "roofline",       0.1 + 0.2,
                     1.0 / 3,   ~0ull,  {{"depth", "10"}}};
  std::string json = writePlan(plan);
  Expected<ShardingPlan> again = parsePlan(json);
  ASSERT_TRUE(again.has_value()) << text(again.error());
  EXPECT_EQ(*again, plan);
  EXPECT_EQ(writePlan(*again), json);
}

TEST(JsonTest, StoredWorkloadsAreInTheWritersForm) {
  int files = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator(sourceFile("workloads"))) {
    if (entry.path().filename() == "dlrm_datasets_locality.json")
      continue;
    Expected<ShardingProblem> problem = readWorkload(entry.path());
    ASSERT_TRUE(problem.has_value()) << text(problem.error());
    EXPECT_EQ(writeWorkload(*problem), *readFile(entry.path())) << entry.path();
    EXPECT_FALSE(problem->source.empty());
    ++files;
  }
  EXPECT_EQ(files, 9);
}

TEST(JsonTest, ColossalHasItsKnownSize) {
  ShardingProblem problem =
      *readWorkload(sourceFile("workloads/synthetic_colossal.json"));
  ASSERT_EQ(problem.tables.size(), 2002u);
  double bytes = 0;
  int64_t mostRows = 0;
  for (const Table &table : problem.tables) {
    bytes += 4.0 * static_cast<double>(table.rows * table.dim);
    mostRows = std::max(mostRows, table.rows);
  }
  EXPECT_NEAR(bytes / static_cast<double>(kGiB), 22327.42, 0.01);
  EXPECT_EQ(mostRows, 2'000'000'000);
}

TEST(JsonTest, UnknownFieldsAreNamedByPath) {
  EXPECT_EQ(errorOf(workloadJson(
                R"({"name": "a", "rows": 1, "dim": 4, "colour": "red"})")),
            "tables[0].colour: unknown field");
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4})",
                                 R"(, "constraints": {"pin": []})")),
            "constraints.pin: unknown field");
}

TEST(JsonTest, MissingFieldsAndWrongTypes) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "dim": 4})")),
            "tables[0]: missing field 'rows'");
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": "9", "dim": 4})")),
            "tables[0].rows: expected a whole number below 2^63, got: \"9\"");
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1.5, "dim": 4})")),
            "tables[0].rows: expected a whole number below 2^63, got: 1.5");
  EXPECT_EQ(errorOf("[]"), "expected an object, got: array");
  EXPECT_EQ(errorOf(R"({"schema": "neuroshard.plan.v1", "tables": [],
                        "features": [], "batch": {"global_size": 1}})"),
            "schema: expected 'neuroshard.workload.v1', got: "
            "'neuroshard.plan.v1'");
}

TEST(JsonTest, NegativeNanAndOverflow) {
  EXPECT_THAT(errorOf(workloadJson(R"({"name": "a", "rows": -1, "dim": 4})")),
              HasSubstr("tables[0].rows: expected a whole number in [1, "));
  EXPECT_EQ(errorOf(workloadJson(
                R"({"name": "a", "rows": 18446744073709551615, "dim": 4})")),
            "tables[0].rows: expected a whole number below 2^63, got: "
            "18446744073709551615");
  EXPECT_THAT(
      errorOf(workloadJson(R"({"name": "a", "rows": 1e999, "dim": 4})")),
      HasSubstr("json: number overflow parsing '1e999'"));
  EXPECT_THAT(errorOf(workloadJson(R"({"name": "a", "rows": NaN, "dim": 4})")),
              HasSubstr("json: parse error at line 2"));
  EXPECT_EQ(
      errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 99999999999})")),
      "tables[0].dim: expected a whole number in [1, 1048576], got: "
      "99999999999");
}

TEST(JsonTest, TruncatedAtEveryByteIsOneClearError) {
  std::string json = writeWorkload(everything());
  // The last byte is the newline; without it the text is whole.
  for (size_t size = 0; size + 1 < json.size(); size += 7) {
    Expected<ShardingProblem> parsed =
        parseWorkload(std::string_view(json).substr(0, size));
    ASSERT_FALSE(parsed.has_value()) << size;
    EXPECT_EQ(parsed.error().size(), 1u);
    EXPECT_THAT(text(parsed.error()), HasSubstr("json: parse error"));
  }
}

TEST(JsonTest, FieldsGivenTwiceAreRefused) {
  EXPECT_EQ(
      errorOf(workloadJson(R"({"name": "a", "rows": 1, "rows": 2, "dim": 4})")),
      "json: an object has the field 'rows' twice, at tables[0]");
  // At any depth, the first of them; the same name elsewhere is another field.
  EXPECT_EQ(errorOf(R"({"a": [{"b": {"a": 1, "c": [], "c": {}}}], "a": 2})"),
            "json: an object has the field 'c' twice, at a[0].b");
  EXPECT_EQ(errorOf(R"({"a": 1, "a": 2})"),
            "json: an object has the field 'a' twice");
  EXPECT_EQ(errorOf(R"({"a": [1, {"b": [2, {"c": 1e400}]}]})"),
            "json: number overflow parsing '1e400', at a[1].b[1]");
  EXPECT_THAT(errorOf(R"({"a": [{"a": {"a": 1}}, {"a": 2}]})"),
              HasSubstr("a: unknown field"));
  // A text that is no JSON is told so first.
  EXPECT_THAT(errorOf(R"({"a": 1, "a": 2,})"), HasSubstr("json: parse error"));
}

/// A search request holds a plan, which is read by the plan's reader.
TEST(JsonTest, ErrorsOfAPlanInARequestAreThoseOfThePlan) {
  ShardingPlan plan =
      makePlan(twoTables(), {makeShard("a", "a", 0, 1000, 0, 16, {0})});
  Expected<SearchRequest> request =
      parseSearchRequest(R"({"previous": )" + writePlan(plan) + "}");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->options.warmStart->previous, plan);
  std::string broken =
      R"({"schema": "neuroshard.plan.v1", "device_count": "2"})";
  std::string alone = text(parsePlan(broken).error());
  request = parseSearchRequest(R"({"previous": )" + broken + "}");
  ASSERT_FALSE(request);
  EXPECT_THAT(alone, HasSubstr("device_count: expected a whole number"));
  EXPECT_THAT(text(request.error()),
              HasSubstr("previous: device_count: expected a whole number"));
}

/// Texts with bytes changed, dropped or doubled at random are answered without
/// a crash.
TEST(JsonTest, NestingHasALimit) {
  auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const char *expected =
      "json: expected lists and objects at most 64 deep inside each other";
  EXPECT_EQ(errorOf(nested(64)), "expected an object, got: array");
  EXPECT_EQ(errorOf(nested(65)), expected);
  EXPECT_EQ(errorOf(nested(10'000'000)), expected);
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i)
    objects += R"({"[": )";
  EXPECT_EQ(errorOf(objects), expected);
  EXPECT_FALSE(parsePlan(nested(65)));
  // Brackets in texts do not count.
  EXPECT_THAT(errorOf(R"({"source": ")" + std::string(99, '[') + R"(\"[[["})"),
              HasSubstr("missing field 'schema'"));
}

TEST(JsonTest, DamagedFilesNeverCrash) {
  const std::string whole = writeWorkload(everything());
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string json = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      size_t at = random() % json.size();
      switch (random() % 3) {
      case 0:
        json[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        json.erase(at, 1 + random() % 5);
        break;
      default:
        json.insert(at, json.substr(random() % json.size(), 5));
      }
    }
    Expected<ShardingProblem> parsed = parseWorkload(json);
    if (parsed)
      EXPECT_EQ(text(check(*parsed)), "");
    else
      EXPECT_FALSE(parsed.error().front().message.empty());
  }
}

/// The documented examples are a workload and a plan for it.
TEST(JsonTest, ExamplesInTheDocumentation) {
  std::string docs = *readFile(sourceFile("docs/formats.md"));
  std::vector<std::string> blocks;
  const std::string begin = "```json\n";
  for (size_t at = docs.find(begin); at != std::string::npos;
       at = docs.find(begin, at + 1)) {
    size_t first = at + begin.size();
    blocks.push_back(docs.substr(first, docs.find("```", first) - first));
  }
  ASSERT_EQ(blocks.size(), 2u);
  Expected<ShardingProblem> problem = parseWorkload(blocks[0]);
  ASSERT_TRUE(problem.has_value()) << text(problem.error());
  Expected<ShardingPlan> plan = parsePlan(blocks[1]);
  ASSERT_TRUE(plan.has_value()) << text(plan.error());
  EXPECT_EQ(text(verify(*plan, *problem)), "");
  EXPECT_EQ(writePlan(*plan), blocks[1]);
}

TEST(JsonTest, WithoutTablesTheirNamesAreNotUnknown) {
  for (std::string tables : {"null", "{}", "3"})
    EXPECT_THAT(errorOf(R"({"schema": "neuroshard.workload.v1",
      "batch": {"global_size": 8}, "topology": "2xCPU", "tables": )" +
                        tables + R"(,
      "features": [{"name": "f", "table": "a"}, {"name": "g", "table": "b"}],
      "constraints": {"pins": [{"table": "a", "devices": [0]}]}})"),
                AllOf(StartsWith("tables: expected a list, got: "),
                      Not(HasSubstr("\n"))));
}

TEST(JsonTest, UnknownNamesAreRefused) {
  EXPECT_EQ(errorOf(workloadJson(
                R"({"name": "a", "rows": 1, "dim": 4, "type": "f64"})")),
            "tables[0].type: expected f32, f16, bf16, int8, int4 or fp8, got: "
            "'f64'");
  EXPECT_EQ(
      errorOf(workloadJson(
          R"({"name": "a", "rows": 1, "dim": 4, "optimizer": "adamax"})")),
      "tables[0].optimizer: expected " + choicesOf<OptimizerKind>() +
          ", got: 'adamax'");
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "sgd", "weight_decay_mode": "l1"}})")),
            "tables[0].optimizer.weight_decay_mode: expected default, l2, "
            "decoupled or adagradw, got: 'l1'");
  EXPECT_THAT(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4})",
                                   R"(, "topology": "8xTPU")")),
              HasSubstr("topology: unknown device class 'TPU'"));
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4})",
                                 R"(, "topology": "2xCPU", "constraints":
                             {"pins": [{"table": "z", "devices": [0]}]})")),
            "constraints.pins[0].table: unknown table 'z'");
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "user", "rows": 1, "dim": 4})",
                                 R"(, "topology": "2xCPU", "constraints":
                             {"pins": [{"table": "usr", "devices": [0]}]})")),
            "constraints.pins[0].table: unknown table 'usr'; did you mean "
            "'user'?");
}

TEST(JsonTest, OptimizersKeepTheirNamesAndModes) {
  for (const OptimizerProperties &known : kOptimizers) {
    Expected<ShardingProblem> problem = parseWorkload(
        workloadJson(R"({"name": "a", "rows": 1, "dim": 4, "optimizer": ")" +
                     std::string(known.name) + R"("})"));
    ASSERT_TRUE(problem.has_value()) << text(problem.error());
    Optimizer &optimizer = problem->tables[0].optimizer;
    EXPECT_EQ(toString(optimizer.kind), known.name);
    problem->tables[0].elementType = ElementType::BF16;
    optimizer.weightDecay = 0.5;
    optimizer.maxGradient = 0.75;
    optimizer.stochasticRounding = true;
    optimizer.weightDecayMode = known.isOneWeightDecayMode
                                    ? known.weightDecayMode
                                    : WeightDecayMode::Decoupled;
    optimizer.l1Penalty = known.hasPenalties ? 0.25 : 0;
    optimizer.l2Penalty = known.hasPenalties ? 0.125 : 0;
    optimizer.eta = known.hasEta ? 0.0625 : optimizer.eta;
    if (known.hasCounters) {
      optimizer.counterHalflife = 4;
      optimizer.adjustmentIter = 100;
      optimizer.adjustmentUb = 0.5;
    }
    Expected<ShardingProblem> again = parseWorkload(writeWorkload(*problem));
    ASSERT_TRUE(again.has_value()) << text(again.error());
    EXPECT_EQ(again->tables[0].optimizer, optimizer);
  }
}

TEST(JsonTest, AdamWWithL2DecayIsRefused) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "adamw", "weight_decay_mode": "l2"}})")),
            "tables[0].optimizer.weight_decay_mode: adamw has decoupled weight "
            "decay alone, got: l2");
}

TEST(JsonTest, StochasticRoundingIsOfNarrowTypes) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "adam", "stochastic_rounding": true}})")),
            "tables[0].optimizer.stochastic_rounding: weights of f32 are not "
            "rounded; it is for f16 and bf16");
}

TEST(JsonTest, PenaltiesAreOfFTRLAlone) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "adam", "l1_penalty": 1}})")),
            "tables[0].optimizer.l1_penalty: " +
                noSuchSetting(OptimizerKind::Adam, "l1_penalty"));
}

TEST(JsonTest, EtaIsOfLARSAlone) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "lamb", "eta": 1}})")),
            "tables[0].optimizer.eta: " +
                noSuchSetting(OptimizerKind::LAMB, "eta"));
}

TEST(JsonTest, OptimizersTakeTheirOwnSettingsAlone) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "sgd", "beta2": 0.5}})")),
            "tables[0].optimizer.beta2: sgd has no beta2; it has "
            "weight_decay, max_gradient, weight_decay_mode, "
            "stochastic_rounding and catch_up");
  // Files of earlier builds have the defaults of all settings.
  Expected<ShardingProblem> problem =
      parseWorkload(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                "optimizer": {"kind": "sgd", "beta2": 0.999,
                              "weight_decay": 0.5}})"));
  ASSERT_TRUE(problem.has_value()) << text(problem.error());
  EXPECT_EQ(problem->tables[0].optimizer.weightDecay, 0.5);
}

TEST(JsonTest, HistogramOfWrongLength) {
  EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4,
                     "access": {"batch": 1, "reuse": [1, 0]}})")),
            "tables[0].access.reuse: expected 17 shares, got: 2");
}

TEST(JsonTest, PlanErrorsNameTheShard) {
  Expected<ShardingPlan> plan = parsePlan(R"({"schema": "neuroshard.plan.v1",
    "device_count": 2, "shards": [{"name": "s", "table": "a", "rows": [0],
    "cols": [0, 4], "devices": [0.5], "tier": "tape"}]})");
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(text(plan.error()),
            "shards[0].rows: expected [begin, end]\n"
            "shards[0].devices[0]: expected a whole number below 2^63, got: "
            "0.5\n"
            "shards[0].tier: expected hbm, dram or ssd, got: 'tape'");
}

TEST(JsonTest, PublishedHistogramsFitTheSchema) {
  std::string pools =
      *readFile(sourceFile("workloads/dlrm_datasets_locality.json"));
  size_t count = 0;
  for (size_t at = pools.find("\"access\": {"); at != std::string::npos;
       at = pools.find("\"access\": {", at + 1)) {
    std::string object = pools.substr(at, pools.find('}', at) + 1 - at);
    EXPECT_EQ(errorOf(workloadJson(R"({"name": "a", "rows": 1, "dim": 4, )" +
                                   object + "}")),
              "no error");
    ++count;
  }
  EXPECT_EQ(count, 2u);
}

} // namespace
