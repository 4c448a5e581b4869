//===- InitializerTest.cpp - Initial weights of tables --------------------===//
//
// Shows that initial weights are uniform and do not depend on the plan.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/Initializer.h"
#include "TestModels.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::runtime;
using namespace neuroshard::test;

namespace {

TEST(Initialization, DoesNotDependOnThePlan) {
  Model model = makeModel(Optimizer::Adagrad);
  model.initialAccumulator = 0.125f;
  std::vector<std::vector<float>> expected;
  for (PlanKind kind : {PlanKind::TableWise, PlanKind::Column, PlanKind::Row,
                        PlanKind::RowColumn, PlanKind::Mixed}) {
    TestWorld world(model, makePlan(model, kind, 4), 4, 2);
    ASSERT_EQ(nsrt_table_initialize(world.get(), -1, 42), 0);
    std::vector<std::vector<float>> tables;
    for (int t = 0; t < 4; ++t) {
      tables.push_back(world.table(t));
      EXPECT_THAT(world.state(t, 0), testing::Each(0.125f));
    }
    if (expected.empty())
      expected = tables;
    EXPECT_EQ(tables, expected) << name(kind);
  }
  // Spread over the whole interval, and different per table.
  auto [low, high] =
      std::minmax_element(expected[3].begin(), expected[3].end());
  float bound = 1 / std::sqrt(64.0f);
  EXPECT_GE(*low, -bound);
  EXPECT_LT(*high, bound);
  EXPECT_LT(*low, -0.95f * bound);
  EXPECT_GT(*high, 0.95f * bound);
  EXPECT_NE(expected[0][0], expected[3][0]);
}

TEST(Initialization, IsUniform) {
  neuroshard::TableSpec table;
  table.name = "t";
  table.rows = 1;
  TableInitializer initializer(table, 1);
  double sum = 0, squares = 0;
  constexpr int rows = 300, columns = 300;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      double value = initializer.value(r, c);
      sum += value;
      squares += value * value;
    }
  constexpr double count = rows * columns;
  // Five standard errors of the mean and of the mean square.
  EXPECT_LT(std::fabs(sum / count), 5 * std::sqrt(1 / 3.0 / count));
  EXPECT_LT(std::fabs(squares / count - 1 / 3.0),
            5 * std::sqrt(4 / 45.0 / count));
}

} // namespace
