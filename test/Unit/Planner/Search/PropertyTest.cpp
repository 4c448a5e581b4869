//===- PropertyTest.cpp - Random problems: plans verify, bounds hold ------===//

#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

void addRandomConstraints(ShardingProblem &problem, MersenneTwister &dice) {
  Constraints &constraints = problem.constraints;
  int tables = static_cast<int>(problem.tables.size());
  int devices = problem.topology.deviceCount();
  auto anyTable = [&] { return static_cast<int>(dice.between(0, tables - 1)); };
  auto anyDevice = [&] {
    return static_cast<int>(dice.between(0, devices - 1));
  };
  if (dice.chance(30))
    constraints.pins.push_back({anyTable(), {anyDevice()}});
  if (dice.chance(30))
    constraints.forbids.push_back({anyTable(), {anyDevice()}});
  if (dice.chance(20) && tables > 1) {
    int first = static_cast<int>(dice.between(0, tables - 2));
    (dice.chance(50) ? constraints.coLocate : constraints.separate)
        .push_back({first, first + 1});
  }
  if (dice.chance(30))
    constraints.tables.push_back(
        {anyTable(),
         {dice.oneOf({ShardingKind::TableWise, ShardingKind::ColumnWise,
                      ShardingKind::RowWise, ShardingKind::TableRowWise,
                      ShardingKind::RowColumn, ShardingKind::Replicated})},
         dice.oneOf<int64_t>({1, 4, 8}),
         problem.target == Target::Native && dice.chance(50)
             ? dice.oneOf({0.01, 0.1, 0.5})
             : 0});
  if (dice.chance(20)) {
    const Table &table = problem.tables[static_cast<size_t>(anyTable())];
    int64_t rows = dice.between(1, table.rows);
    constraints.fixedShards.push_back(makeShard(
        "hand", table.name, 0, rows, 0,
        table.dim > 4 && dice.chance(50) ? 4 : table.dim, {anyDevice()}));
  }
}

ShardingProblem randomProblem(uint64_t seed) {
  MersenneTwister dice(seed);
  ShardingProblem problem;
  problem.batch.globalSize = dice.between(1, 512);
  problem.batch.wireType = dice.oneOf(
      {WireType(), WireType(WireFormat::BF16),
       WireType(WireFormat::F32, WireFormat::BF16),
       WireType(WireFormat::BF16, WireFormat::F32), WireType(WireFormat::Int8),
       WireType(WireFormat::F16, WireFormat::Fp8)});
  problem.batch.idType = dice.oneOf({IdType::I32, IdType::I64});
  problem.target = dice.chance(30) ? Target::TorchRec19 : Target::Native;
  problem.optimizerSemantics =
      dice.oneOf({OptimizerSemantics::Exact, OptimizerSemantics::PerShard});
  problem.memoryModel =
      dice.oneOf({MemoryModel::Full, MemoryModel::WeightsOnly});
  problem.constraints.reserves = {0, 0, 0};
  int64_t tables = dice.between(1, 20);
  double stored = 0;
  for (int64_t i = 0; i < tables; ++i) {
    bool odd = problem.target == Target::Native && dice.chance(20);
    Table table = makeTable(
        numbered("t", i), dice.between(1, 30000),
        odd ? dice.between(1, 40) : 4 * dice.between(1, 16),
        dice.oneOf({OptimizerKind::SGD, OptimizerKind::Adagrad,
                    OptimizerKind::RowWiseAdagrad, OptimizerKind::Adam}));
    table.elementType =
        dice.oneOf({ElementType::F32, ElementType::F16, ElementType::BF16});
    stored += static_cast<double>(table.rows * (table.dim + 3) * 4);
    addTable(problem, table, static_cast<double>(dice.between(0, 30)));
    problem.features.back().pooling =
        dice.oneOf({Pooling::Sum, Pooling::Mean, Pooling::None});
  }
  const char *shape = dice.oneOf({"1xCPU", "2xCPU", "5xCPU", "2x2xCPU",
                                  "3+2xCPU", "8xA100-40GB", "2x4xH200"});
  problem.topology = *parseTopology(shape);
  // From far too little to plenty.
  double perDevice = stored * static_cast<double>(dice.between(5, 60)) / 10 /
                     problem.topology.deviceCount();
  for (Device &device : problem.topology.devices)
    device.memoryBytes = static_cast<int64_t>(perDevice) + 100000;
  addRandomConstraints(problem, dice);
  return problem;
}

TEST(PropertyTest, EveryPlanPassesTheVerifierAndTheFileFormat) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  int planned = 0, refused = 0, bad = 0;
  const int problems = std::getenv("NEUROSHARD_ALL") ? 600 : 200;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(problems); ++seed) {
    ShardingProblem problem = randomProblem(seed);
    SearchOptions options;
    options.seed = seed;
    options.evaluationBudget = 300;
    options.algorithm =
        allAlgorithms()[seed % 3 == 0 ? seed / 3 % allAlgorithms().size() : 0];
    options.objective.kind =
        seed % 2 ? ObjectiveKind::Step : ObjectiveKind::Published;
    auto result = search(problem, *model, options);
    if (!result) {
      EXPECT_FALSE(result.error().message.empty()) << seed;
      (result.error().limit == Limit::BadInput ? bad : refused) += 1;
      continue;
    }
    ++planned;
    ASSERT_EQ(text(verify(result->plan, problem)), "") << seed;
    EXPECT_LE(result->lowerBoundMs, result->breakdown.costMs * (1 + 1e-12))
        << seed;
    EXPECT_EQ(*parsePlan(writePlan(result->plan)), result->plan) << seed;
    EXPECT_EQ(*parseWorkload(writeWorkload(problem)), problem) << seed;
  }
  // The generator makes enough of each.
  EXPECT_GT(planned, problems / 3);
  EXPECT_GT(refused, problems / 12);
  EXPECT_LT(bad, problems / 6);
}

/// Without constraints and with native row cuts, weights alone: whenever the
/// tables fill at most 95 % of the devices there must be a plan.
TEST(PropertyTest, FeasibleTasksAreAlwaysPlanned) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  for (uint64_t seed = 0; seed < 100; ++seed) {
    ShardingProblem problem = randomProblem(seed);
    problem.constraints = {};
    problem.target = Target::Native;
    problem.memoryModel = MemoryModel::WeightsOnly;
    int64_t bytes = 0;
    for (Table &table : problem.tables) {
      table.rows += 1000;
      bytes += table.rows *
               ((table.dim * elementBytes(table.elementType) + 15) / 16 * 16);
    }
    for (Device &device : problem.topology.devices)
      device.memoryBytes = static_cast<int64_t>(
          static_cast<double>(bytes) / 0.95 / problem.topology.deviceCount());
    SearchOptions options;
    options.evaluationBudget = 100;
    auto result = search(problem, *model, options);
    ASSERT_TRUE(result.has_value()) << seed << ": " << result.error().str();
  }
}

/// Calls visit(plan) for every way to put whole or column-cut tables on the
/// devices.
void forEachPlan(const ShardingProblem &problem,
                 const std::function<void(const ShardingPlan &)> &visit) {
  std::vector<Shard> shards;
  int devices = problem.topology.deviceCount();
  std::function<void(size_t, int64_t)> place = [&](size_t table,
                                                   int64_t column) {
    if (table == problem.tables.size())
      return visit(makePlan(problem, shards));
    const Table &source = problem.tables[table];
    for (int64_t end = column + 4;; end += 4) {
      end = std::min(end, source.dim);
      for (int device = 0; device < devices; ++device) {
        shards.push_back(makeShard(numbered("s", shards.size()), source.name, 0,
                                   source.rows, column, end, {device}));
        if (end == source.dim)
          place(table + 1, 0);
        else
          place(table, end);
        shards.pop_back();
      }
      if (end == source.dim)
        return;
    }
  };
  place(0, 0);
}

TEST(PropertyTest, LowerBoundIsBelowTheExhaustiveOptimum) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MersenneTwister dice(seed);
    ShardingProblem problem;
    problem.memoryModel = MemoryModel::WeightsOnly;
    problem.batch.globalSize = 4096;
    problem.topology = *parseTopology("2xA100-40GB");
    int64_t tables = dice.between(1, 3);
    for (int64_t i = 0; i < tables; ++i)
      addTable(problem,
               makeTable(numbered("t", i), dice.between(10, 1000000),
                         dice.oneOf<int64_t>({4, 8, 12}),
                         dice.oneOf({OptimizerKind::SGD, OptimizerKind::Adam,
                                     OptimizerKind::RowWiseAdagrad})),
               static_cast<double>(dice.between(1, 50)));
    for (ObjectiveKind kind : {ObjectiveKind::Published, ObjectiveKind::Step}) {
      for (bool reference : {false, true}) {
        if (reference && kind == ObjectiveKind::Step)
          continue;
        auto model = reference ? makeReferenceModel() : makeRooflineModel();
        ObjectiveOptions objective;
        objective.kind = kind;
        double best = 1e300;
        forEachPlan(problem, [&](const ShardingPlan &plan) {
          best =
              std::min(best, evaluate(problem, plan, *model, objective).costMs);
        });
        double bound = lowerBoundMs(problem, *model, objective);
        EXPECT_LE(bound, best) << seed;
        EXPECT_GT(bound, 0.05 * best) << seed;
        SearchOptions options;
        options.objective = objective;
        auto found = search(problem, *model, options);
        ASSERT_TRUE(found.has_value()) << found.error().str();
        EXPECT_LE(bound, found->breakdown.costMs) << seed;
        // Rows may be cut, too, so it can be below the optimum over columns.
        EXPECT_LE(found->breakdown.costMs, 1.25 * best) << seed;
      }
    }
  }
}

} // namespace
