//===- LowerBoundTest.cpp - Bound and search against solved instances -----===//
///
/// \file
/// 200 random instances, solved by trying every way to put whole or column-cut
/// tables on the devices: the bound is never above the optimum and in the
/// median at least 90 % of it; the default search ends within 1 % of it.
//===----------------------------------------------------------------------===//

#include "SolvedInstances.h"
#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace neuroshard;

namespace {

TEST(LowerBoundTest, TwoHundredSolvedInstances) {
  std::vector<double> ratios;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    bool reference = seed % 2 == 0;
    std::unique_ptr<CostModel> model =
        reference ? makeReferenceModel() : makeRooflineModel();
    SearchOptions options;
    options.objective.kind =
        reference ? ObjectiveKind::Published : ObjectiveKind::Step;
    ShardingProblem problem = solvableInstance(seed, true);
    double optimum = optimumMs(problem, *model, options.objective);
    auto found = search(problem, *model, options);
    ASSERT_TRUE(found.has_value()) << found.error().str();
    EXPECT_LE(found->lowerBoundMs, optimum) << seed;
    EXPECT_LE(found->breakdown.costMs, 1.01 * optimum) << seed;
    ratios.push_back(found->lowerBoundMs / optimum);
    // More kinds can only lower the optimum.
    ShardingProblem free = solvableInstance(seed, false);
    EXPECT_LE(lowerBoundMs(free, *model, options.objective), optimum) << seed;
  }
  std::sort(ratios.begin(), ratios.end());
  EXPECT_GE(ratios[ratios.size() / 2], 0.9);
}

// Links of hosts, where a step hides what travels beside kernels.
TEST(LowerBoundTest, SolvedInstancesOnHosts) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ShardingProblem problem = solvableInstance(seed, true);
    bool isPair = problem.topology.devices.size() == 2;
    problem.topology =
        *parseTopology(isPair ? "2x1xH200@10gbit" : "2+1xH200@10gbit");
    SearchOptions options;
    if (seed % 3 == 0) { // ids that dense work and updates hide in part
      options.objective.pipelineDepth = 2;
      options.objective.denseRestMs = 0.01;
    }
    double optimum = optimumMs(problem, *model, options.objective);
    auto found = search(problem, *model, options);
    ASSERT_TRUE(found.has_value()) << found.error().str();
    EXPECT_LE(found->lowerBoundMs, optimum) << seed;
    EXPECT_LE(found->breakdown.costMs, 1.01 * optimum) << seed;
  }
}

// 123 million ways to spread the columns: listing them would take gigabytes.
TEST(LowerBoundTest, ManyWaysToCutATableAreNotListed) {
  ShardingProblem problem = test::twoTables("8xCPU@1GiB");
  problem.tables.clear();
  problem.features.clear();
  test::addTable(problem, test::makeTable("a", 1000, 130), 4);
  problem.constraints.tables = {
      {.table = 0, .allowedKinds = {ShardingKind::TableWise}}};
  std::unique_ptr<CostModel> model = makeRooflineModel();
  auto found = search(problem, *model, {});
  ASSERT_TRUE(found.has_value()) << found.error().str();
  EXPECT_GT(found->lowerBoundMs, 0);
  EXPECT_LE(found->lowerBoundMs, found->breakdown.costMs);
}

} // namespace
