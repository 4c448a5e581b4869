//===- FormsTest.cpp - Forms that rules and targets prescribe survive -----===//

#include "Baselines/Baselines.h"
#include "Forms/EvenColumns.h"
#include "InitialUnits/InitialUnits.h"
#include "LocalSearch/Board.h"
#include "LocalSearch/Proposals.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Five tables, of which "rows" must be cut by rows over all devices. Its rows
/// are no multiple of the devices: equal blocks are not equal shares.
ShardingProblem withRowsRule(Target target, const char *topology) {
  ShardingProblem problem;
  problem.batch.globalSize = 2048;
  problem.topology = *parseTopology(topology);
  problem.target = target;
  problem.constraints.reserves = {0, 0, 0};
  addTable(problem, makeTable("rows", 17917, 64), 2);
  for (int i = 0; i < 4; ++i)
    addTable(problem, makeTable(numbered("t", i), 700 * (i + 1), 64),
             3 + 4 * i);
  problem.constraints.tables.push_back({0, {ShardingKind::RowWise}});
  return problem;
}

/// The cheapest plan of the algorithms that place forms of whole tables.
double cheapestOfOthersMs(const ShardingProblem &problem,
                          const SearchOptions &options) {
  double best = 1e300;
  for (Algorithm algorithm : {Algorithm::TorchRec, Algorithm::Threshold,
                              Algorithm::Published, Algorithm::Lookup}) {
    SearchOptions other = options;
    other.algorithm = algorithm;
    if (auto result = search(problem, *makeRooflineModel(), other))
      best = std::min(best, result->breakdown.costMs);
  }
  return best;
}

class RowsRuleTest
    : public testing::TestWithParam<std::tuple<Target, const char *>> {};

TEST_P(RowsRuleTest, SearchKeepsTheFormAndIsNoWorseThanItsStarts) {
  auto [target, topology] = GetParam();
  ShardingProblem problem = withRowsRule(target, topology);
  auto result = search(problem, *makeRooflineModel(), {});
  ASSERT_TRUE(result.has_value()) << result.error().str();
  EXPECT_THAT(result->stopReason, Not(HasSubstr("first plan found")));
  EXPECT_LE(result->breakdown.costMs, cheapestOfOthersMs(problem, {}));
}

INSTANTIATE_TEST_SUITE_P(
    Targets, RowsRuleTest,
    testing::Combine(testing::Values(Target::TorchRec19, Target::Native),
                     testing::Values("2xCPU", "3xCPU", "4xCPU", "2x2xCPU")));

/// Random rules on tables that TorchRec's planner and the thresholds cut by
/// rows: the local search from there must end with a plan, too.
TEST(FormsTest, DefaultIsNoWorseThanOthersUnderRandomRules) {
  constexpr ShardingKind kKinds[] = {
      ShardingKind::TableWise, ShardingKind::ColumnWise,
      ShardingKind::RowWise,   ShardingKind::TableRowWise,
      ShardingKind::RowColumn, ShardingKind::Replicated};
  int planned = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    MersenneTwister dice(seed);
    ShardingProblem problem;
    problem.batch.globalSize = dice.oneOf<int64_t>({64, 2048});
    problem.target = dice.oneOf({Target::TorchRec19, Target::Native});
    problem.topology = *parseTopology(
        dice.oneOf({"2xCPU", "3xCPU", "2x2xCPU", "4xA100-40GB"}));
    problem.constraints.reserves = {0, 0, 0};
    int tables = static_cast<int>(dice.between(1, 5));
    for (int i = 0; i < tables; ++i) {
      addTable(problem,
               makeTable(numbered("t", i), dice.between(2, 30000),
                         4 * dice.between(1, 32)),
               static_cast<double>(dice.between(1, 60)));
      std::vector<ShardingKind> kinds;
      for (ShardingKind kind : kKinds)
        if (dice.chance(30))
          kinds.push_back(kind);
      if (!kinds.empty() && dice.chance(70))
        problem.constraints.tables.push_back({i, kinds});
    }
    SearchOptions options;
    options.seed = seed;
    options.evaluationBudget = 3000;
    auto result = search(problem, *makeRooflineModel(), options);
    double others = cheapestOfOthersMs(problem, options);
    if (!result) {
      EXPECT_EQ(others, 1e300) << seed << ": " << result.error().str();
      continue;
    }
    ++planned;
    EXPECT_EQ(text(verify(result->plan, problem)), "") << seed;
    EXPECT_LE(result->breakdown.costMs, others * (1 + 1e-9)) << seed;
  }
  EXPECT_GT(planned, 60);
}

/// Random edits of the plans of other planners lose no piece and break no rule.
TEST(FormsTest, StepsKeepEveryPieceAndTheTarget) {
  for (Target target : {Target::TorchRec19, Target::Native})
    for (const char *topology : {"4xCPU", "2x2xCPU"}) {
      ShardingProblem problem = withRowsRule(target, topology);
      std::unique_ptr<CostModel> model = makeRooflineModel();
      SearchOptions options;
      SearchContext context(problem, *model, options);
      std::vector<UnitPtr> units = *initialUnits(context);
      for (SearchOutcome outcome :
           {searchTorchRec(context, units),
            searchDistributedEmbeddings(context, units)}) {
        ASSERT_TRUE(outcome.state.has_value());
        Board board(context, units, *outcome.state);
        EXPECT_DOUBLE_EQ(board.state().costMs(), outcome.state->costMs());
        std::vector<int> devices(static_cast<size_t>(context.deviceCount));
        std::iota(devices.begin(), devices.end(), 0);
        Proposals proposals(board, 7);
        for (int step = 0; step < 300; ++step) {
          Edit edit = proposals.draw(devices);
          if (edit.kind != Edit::None && board.fits(edit))
            board.apply(edit, {});
        }
        EXPECT_EQ(text(verify(withEvenColumns(board.state()).plan(), problem)),
                  "");
      }
    }
}

/// The rest of a table whose first block is written by hand must be on device 1
/// under the target. Edits do not check that rule, and a hot table on device 1
/// drives the rest away.
TEST(FormsTest, ResultThatBreaksARuleGivesWayToTheBestStartThatDoesNot) {
  ShardingProblem problem;
  problem.batch.globalSize = 2048;
  problem.topology = *parseTopology("2xCPU");
  problem.target = Target::TorchRec19;
  problem.constraints.reserves = {0, 0, 0};
  addTable(problem, makeTable("rows", 17917, 64), 2);
  addTable(problem, makeTable("hot", 100, 64), 60);
  // Placed by dim, this comes first, onto device 0.
  addTable(problem, makeTable("wide", 10, 128), 0.01);
  problem.constraints.fixedShards = {
      makeShard("hand", "rows", 0, 8959, 0, 64, {0}),
      makeShard("hot", "hot", 0, 100, 0, 64, {1})};
  auto result = search(problem, *makeRooflineModel(), {});
  ASSERT_TRUE(result.has_value()) << result.error().str();
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  EXPECT_THAT(result->stopReason, Not(HasSubstr("first plan found")));
}

TEST(FormsTest, PlanWithRowBlocksIsCarriedOver) {
  for (Target target : {Target::TorchRec19, Target::Native}) {
    ShardingProblem problem = withRowsRule(target, "4xCPU");
    SearchOptions options;
    options.algorithm = Algorithm::TorchRec;
    auto first = search(problem, *makeRooflineModel(), options);
    ASSERT_TRUE(first.has_value());
    options.algorithm = Algorithm::Default;
    options.warmStart = {.previous = first->plan, .horizonSteps = 1e-3};
    auto again = search(problem, *makeRooflineModel(), options);
    ASSERT_TRUE(again.has_value()) << again.error().str();
    EXPECT_EQ(again->migration->bytes, 0);
    EXPECT_DOUBLE_EQ(again->breakdown.costMs, first->breakdown.costMs);
    EXPECT_THAT(again->tried, Contains(HasSubstr("a plan near it")));
  }
}

} // namespace
