//===- TableAccessTest.cpp - Whole tables over their shards ---------------===//
//
// Shows that ranges of rows are read and written over all shards, and that
// wrong ranges are errors.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"

#include <gtest/gtest.h>

using namespace neuroshard::test;

namespace {

TEST(TableAccess, RowRangesAndErrors) {
  Model model = makeModel(Optimizer::Adagrad);
  TestWorld world(model, makePlan(model, PlanKind::RowColumn, 3), 3);
  std::vector<float> values;
  for (int i = 0; i < 37 * 10; ++i)
    values.push_back(static_cast<float>(i));
  world.setTable(0, values);
  std::vector<float> part(5 * 10);
  ASSERT_EQ(nsrt_table_read(world.get(), 0, 10, 15, part.data()), 0);
  EXPECT_EQ(part,
            std::vector<float>(values.begin() + 100, values.begin() + 150));
  for (float &value : part)
    value = -value;
  ASSERT_EQ(nsrt_table_write(world.get(), 0, 10, 15, part.data()), 0);
  for (int i = 100; i < 150; ++i)
    values[static_cast<size_t>(i)] = -values[static_cast<size_t>(i)];
  EXPECT_EQ(world.table(0), values);

  std::vector<float> state(37 * 10, 2.0f);
  ASSERT_EQ(nsrt_state_write(world.get(), 0, 0, 0, 37, state.data()), 0);
  EXPECT_EQ(world.state(0, 0), state);

  EXPECT_NE(nsrt_table_read(world.get(), 0, 30, 38, part.data()), 0);
  EXPECT_STREQ(nsrt_last_error(),
               "rows [30, 38) are not in table \"user\" with 37 rows");
  EXPECT_NE(nsrt_table_read(world.get(), 4, 0, 1, part.data()), 0);
  EXPECT_STREQ(nsrt_last_error(), "there is no table 4; the artifact has 4");
  EXPECT_NE(nsrt_state_read(world.get(), 0, 1, 0, 1, part.data()), 0);
  EXPECT_STREQ(nsrt_last_error(), "table \"user\" has 1 state arrays; there is "
                                  "no state 1");
  EXPECT_EQ(nsrt_world_find_table(world.get(), "word"), 3);
  EXPECT_EQ(nsrt_world_find_table(world.get(), "words"), -1);
}

} // namespace
