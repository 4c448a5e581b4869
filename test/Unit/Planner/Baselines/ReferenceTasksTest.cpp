//===- ReferenceTasksTest.cpp - The published search reaches all 24 costs -===//

#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Serialization/Json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr double kRelative = 1e-9;

const nlohmann::json &expectedTasks() {
  static const nlohmann::json tasks =
      nlohmann::json::parse(*readFile(std::string(NEUROSHARD_SOURCE_DIR) +
                                      "/test/reference_search/expected.json"));
  return tasks;
}

class ReferenceTasksTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    expected = expectedTasks()[static_cast<size_t>(GetParam())];
    Expected<ShardingProblem> parsed = readWorkload(
        std::string(NEUROSHARD_SOURCE_DIR) + "/test/reference_search/" +
        expected["task"].get<std::string>() + ".json");
    ASSERT_TRUE(parsed.has_value()) << text(parsed.error());
    problem = *parsed;
    costMs = expected["cost_ms"];
    options.objective.kind = ObjectiveKind::Published;
  }

  /// The reference's plan: its splits in order, then its placement.
  ShardingPlan referencePlan() const {
    std::vector<Shard> pieces;
    for (const Table &table : problem.tables)
      pieces.push_back(
          makeShard("", table.name, 0, table.rows, 0, table.dim, {}));
    for (size_t index : expected["splits"]) {
      Shard right = pieces[index];
      int64_t middle = right.colBegin + right.width() / 2;
      pieces[index].colEnd = middle;
      right.colBegin = middle;
      pieces.push_back(right);
    }
    std::vector<Shard> placed;
    int device = 0;
    for (const auto &indices : expected["shards"]) {
      for (size_t index : indices) {
        placed.push_back(pieces[index]);
        placed.back().name = numbered("s", index);
        placed.back().devices = {device};
      }
      ++device;
    }
    return makePlan(problem, placed);
  }

  nlohmann::json expected;
  ShardingProblem problem;
  double costMs = 0;
  SearchOptions options;
  std::unique_ptr<CostModel> model = makeReferenceModel();
};

TEST_P(ReferenceTasksTest, ReferencePlanHasTheReferenceCost) {
  CostBreakdown cost =
      evaluate(problem, referencePlan(), *model, options.objective);
  EXPECT_NEAR(cost.costMs, costMs, kRelative * costMs);
}

TEST_P(ReferenceTasksTest, PublishedSearchReachesTheReferenceCost) {
  options.algorithm = Algorithm::Published;
  auto result = search(problem, *model, options);
  ASSERT_TRUE(result.has_value()) << result.error().str();
  EXPECT_NEAR(result->breakdown.costMs, costMs, kRelative * costMs);
  EXPECT_EQ(result->plan.provenance.predictedCostMs, result->breakdown.costMs);
}

TEST_P(ReferenceTasksTest, DefaultSearchIsNeverWorseAndAboveTheBound) {
  auto result = search(problem, *model, options);
  ASSERT_TRUE(result.has_value()) << result.error().str();
  EXPECT_LE(result->breakdown.costMs, costMs * (1 + kRelative));
  EXPECT_GT(result->lowerBoundMs, 0);
  EXPECT_LE(result->lowerBoundMs, result->breakdown.costMs);
}

TEST(ReferenceTasksCountTest, ThereAre24) {
  EXPECT_EQ(expectedTasks().size(), 24u);
}

INSTANTIATE_TEST_SUITE_P(Tasks, ReferenceTasksTest, testing::Range(0, 24));

} // namespace
