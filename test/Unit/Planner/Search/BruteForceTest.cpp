//===- BruteForceTest.cpp - Copies, cuts and placement, all tried ---------===//
///
/// \file
/// Small random problems without limits of memory, whose tables are whole,
/// copied to all devices, or halved by rows or columns (on four devices also
/// cut into four): every combination of forms and devices is priced, on groups
/// with results sent directly and by relay.
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Support/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr double kTolerance = 0.01;
constexpr int kProblems = 200;

ShardingProblem drawProblem(MersenneTwister &dice) {
  ShardingProblem problem;
  problem.topology =
      *parseTopology(dice.oneOf({"2xH200", "3xH200", "3xCPU", "2x2xH200"}));
  for (Device &device : problem.topology.devices)
    device.memoryBytes = int64_t{1} << 40;
  problem.batch.globalSize = int64_t{256} << dice.below(8);
  int tables = problem.topology.deviceCount() > 3 ? 2 : 3;
  for (int i = 0; i < tables; ++i)
    addTable(
        problem,
        makeTable(numbered("t", i),
                  static_cast<int64_t>(10 * std::pow(10, 5 * dice.uniform())),
                  int64_t{16} << dice.below(4),
                  dice.oneOf({OptimizerKind::SGD, OptimizerKind::Adagrad,
                              OptimizerKind::Adam})),
        static_cast<double>(dice.between(1, 40)));
  return problem;
}

using Form = std::vector<Shard>;

Shard piece(const Table &table, int row, int rows, int col, int cols,
            std::vector<int> devices) {
  return {.name = table.name + "_" + std::to_string(row * cols + col),
          .table = table.name,
          .rowBegin = table.rows * row / rows,
          .rowEnd = table.rows * (row + 1) / rows,
          .colBegin = table.dim * col / cols,
          .colEnd = table.dim * (col + 1) / cols,
          .devices = std::move(devices)};
}

std::vector<Form> formsOf(const Table &table, int devices) {
  std::vector<int> all(static_cast<size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Form> forms = {{piece(table, 0, 1, 0, 1, all)}};
  for (int a = 0; a < devices; ++a) {
    forms.push_back({piece(table, 0, 1, 0, 1, {a})});
    for (int b = a + 1; b < devices; ++b) {
      forms.push_back(
          {piece(table, 0, 2, 0, 1, {a}), piece(table, 1, 2, 0, 1, {b})});
      forms.push_back(
          {piece(table, 0, 1, 0, 2, {a}), piece(table, 0, 1, 1, 2, {b})});
    }
  }
  if (devices > 3) {
    Form byRows, byColumns;
    for (int device = 0; device < devices; ++device) {
      byRows.push_back(piece(table, device, devices, 0, 1, {device}));
      byColumns.push_back(piece(table, 0, 1, device, devices, {device}));
    }
    forms.push_back(byRows);
    forms.push_back(byColumns);
  }
  return forms;
}

double leastMs(const ShardingProblem &problem, const CostModel &model) {
  std::vector<std::vector<Form>> forms;
  for (const Table &table : problem.tables)
    forms.push_back(formsOf(table, problem.topology.deviceCount()));
  bool hasGroups = problem.topology.levels.back().groupSizes.size() > 1;
  std::vector<size_t> choice(forms.size());
  double best = std::numeric_limits<double>::infinity();
  for (;;) {
    for (Route route : {Route::Direct, Route::Relay}) {
      ShardingPlan plan;
      plan.deviceCount = problem.topology.deviceCount();
      for (size_t i = 0; i < forms.size(); ++i)
        for (Shard shard : forms[i][choice[i]]) {
          shard.route = hasGroups && !shard.hasCopies() ? route : Route::Auto;
          plan.shards.push_back(std::move(shard));
        }
      best = std::min(best, evaluate(problem, plan, model, {}).costMs);
      if (!hasGroups)
        break;
    }
    size_t i = 0;
    while (i < choice.size() && ++choice[i] == forms[i].size())
      choice[i++] = 0;
    if (i == choice.size())
      return best;
  }
}

TEST(BruteForceTest, SearchIsWithinOnePercent) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  int above = 0, copied = 0;
  for (uint64_t seed = 0; seed < kProblems; ++seed) {
    MersenneTwister dice(seed);
    ShardingProblem problem = drawProblem(dice);
    SearchOptions options;
    options.threads = 1;
    auto found = search(problem, *model, options);
    ASSERT_TRUE(found) << seed;
    double least = leastMs(problem, *model);
    above += found->breakdown.costMs > least * (1 + kTolerance);
    EXPECT_LE(found->breakdown.costMs, least * (1 + kTolerance)) << seed;
    copied += std::ranges::any_of(found->plan.shards, &Shard::hasCopies);
  }
  // Copies are worth it for some and not for all.
  EXPECT_GT(copied, kProblems / 10);
  EXPECT_LT(copied, kProblems * 19 / 20);
  std::printf("%d of %d above, %d with copies\n", above, kProblems, copied);
}

} // namespace
