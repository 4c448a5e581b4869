//===- ReferenceClosedFormTest.cpp - The closed form against hand numbers -===//

#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "Support.h"
#include "neuroshard/Planner/Objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

TEST(ReferenceClosedFormTest, OnePlanByHand) {
  ShardingProblem problem = twoTables();
  ShardingPlan plan =
      makePlan(problem, {makeShard("a_0", "a", 0, 1000, 0, 12, {0}),
                         makeShard("a_1", "a", 0, 1000, 12, 16, {1}),
                         makeShard("b_0", "b", 0, 500, 0, 8, {1})});
  ObjectiveOptions options;
  options.kind = ObjectiveKind::Published;
  CostBreakdown cost = evaluate(problem, plan, *makeReferenceModel(), options);

  double c0 = 0.3 + 0.004 * std::pow(4 * 20 * 1.15, 0.93) + 0.02;
  double s1 = 4 * 12 * 1.15 + 16 * (1 + 0.05 * std::log10(500));
  double c1 = 0.3 + 0.004 * std::pow(s1, 0.93) + 0.04;
  double b = 0.015 * 12 + 0.005 * 12;
  double skew = std::abs(c0 - c1);
  EXPECT_NEAR(cost.devices[0].compute.forwardMs, c0, 1e-12);
  EXPECT_NEAR(cost.devices[1].compute.forwardMs, c1, 1e-12);
  EXPECT_NEAR(cost.devices[0].backwardCommunicationMs, b, 1e-12);
  double f0 = b + 0.7 * (c0 < c1 ? skew : 0);
  double f1 = b + 0.7 * (c1 < c0 ? skew : 0);
  EXPECT_NEAR(cost.costMs, std::max(c0 + b + f0, c1 + b + f1), 1e-12);
}

TEST(ReferenceClosedFormTest, EmptyDeviceCostsNothing) {
  ShardSet empty;
  ComputeMs time{1, 1};
  makeReferenceModel()->computeMs({&empty, 1}, {&time, 1});
  EXPECT_EQ(time.total(), 0);
}

} // namespace
