//===- PlanTaskTest.cpp - Tasks whose plans are measured ------------------===//

#include "neuroshard/Collect/PlanMeasurement.h"

#include <gtest/gtest.h>

#include <set>

using namespace neuroshard;

namespace {

TEST(PlanTask, DevicesHoldTablesWithTheStatesOfTheirOptimizer) {
  TablePool pool = makeTablePool(856);
  std::set<OptimizerKind> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ShardingProblem problem = makePlanTask(pool, seed, 2);
    int64_t bytes = 0;
    for (const Table &table : problem.tables) {
      OptimizerStates states = optimizerStates(table.optimizer);
      int64_t perRow = table.dim * (elementBytes(table.elementType) +
                                    4 * states.perElement) +
                       4 * states.perRow;
      bytes += table.rows * perRow;
    }
    seen.insert(problem.tables.front().optimizer.kind);
    ASSERT_EQ(problem.topology.deviceCount(), 2);
    EXPECT_NEAR(static_cast<double>(problem.topology.devices[0].memoryBytes),
                0x1p28 + 1.3 * static_cast<double>(bytes) / 2, 1);
  }
  EXPECT_EQ(seen.size(), 4u);
}

} // namespace
