//===- EvenColumnsTest.cpp - A table has one width on each device ---------===//

#include "Forms/EvenColumns.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::UnorderedElementsAre;

namespace {

using Piece = std::pair<int64_t, int>; // width, device

/// One table in column shards of target torchrec-1.9.
class EvenColumnsTest : public testing::Test {
protected:
  /// The column shards that withEvenColumns() makes of these.
  std::vector<Piece> even(const std::vector<Piece> &pieces) {
    problem.tables.front().dim = std::accumulate(
        pieces.begin(), pieces.end(), int64_t{0},
        [](int64_t sum, const Piece &piece) { return sum + piece.first; });
    SearchContext context(problem, *model, options);
    std::vector<UnitPtr> units;
    Shard shard = makeShard("", "a", 0, problem.tables.front().rows, 0, 0, {});
    for (auto [width, device] : pieces) {
      shard.colBegin = shard.colEnd;
      shard.colEnd += width;
      units.push_back(makeUnit(context, {shard}));
    }
    SearchState state(context, units);
    for (size_t i = 0; i < pieces.size(); ++i)
      state.place(i, pieces[i].second);
    SearchState result = withEvenColumns(std::move(state));
    EXPECT_TRUE(result.withinMemory());
    plan = result.plan();
    std::vector<Piece> after;
    for (const Shard &one : plan.shards)
      after.emplace_back(one.width(), one.devices.front());
    return after;
  }

  void allow(std::vector<ShardingKind> kinds, int64_t minWidth) {
    problem.constraints.tables = {{0, std::move(kinds), minWidth}};
  }

  static ShardingProblem makeProblem() {
    ShardingProblem problem;
    problem.batch.globalSize = 64;
    problem.topology = *parseTopology("3xCPU@1GiB");
    problem.constraints.reserves = {0, 0, 0};
    problem.target = Target::TorchRec19;
    addTable(problem, makeTable("a", 1000, 16), 4);
    return problem;
  }

  ShardingProblem problem = makeProblem();
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  ShardingPlan plan;
};

TEST_F(EvenColumnsTest, JoinsWhatADeviceHas) {
  EXPECT_THAT(even({{8, 0}, {4, 1}, {4, 0}}),
              UnorderedElementsAre(Piece(12, 0), Piece(4, 1)));
  EXPECT_EQ(text(verify(plan, problem)), "");
  EXPECT_THAT(even({{12, 2}, {8, 2}}), UnorderedElementsAre(Piece(20, 2)));
}

TEST_F(EvenColumnsTest, LeavesEqualWidthsAndOtherTargets) {
  EXPECT_THAT(even({{8, 0}, {4, 1}, {8, 0}}),
              UnorderedElementsAre(Piece(8, 0), Piece(4, 1), Piece(8, 0)));
  problem.target = Target::Native;
  EXPECT_THAT(even({{12, 2}, {8, 2}}),
              UnorderedElementsAre(Piece(12, 2), Piece(8, 2)));
}

TEST_F(EvenColumnsTest, CutsAgainWhatMayNotBeWhole) {
  allow({ShardingKind::ColumnWise}, 4);
  EXPECT_THAT(even({{12, 2}, {4, 2}}),
              UnorderedElementsAre(Piece(8, 2), Piece(8, 2)));
  // 36 columns have no halves.
  EXPECT_THAT(even({{28, 2}, {8, 2}}),
              UnorderedElementsAre(Piece(12, 2), Piece(12, 2), Piece(12, 2)));
  EXPECT_EQ(text(verify(plan, problem)), "");
}

TEST_F(EvenColumnsTest, MovesOneWhereNoEqualWidthsAreWideEnough) {
  allow({ShardingKind::ColumnWise}, 8);
  std::vector<Piece> pieces = even({{12, 2}, {8, 2}});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_NE(pieces[0].second, pieces[1].second);
  EXPECT_EQ(text(verify(plan, problem)), "");
}

TEST_F(EvenColumnsTest, StaysWhereNothingHasRoom) {
  allow({ShardingKind::ColumnWise}, 8);
  problem.topology.devices[0].memoryBytes = 20000;
  problem.topology.devices[1].memoryBytes = 20000;
  EXPECT_THAT(even({{12, 2}, {8, 2}}),
              UnorderedElementsAre(Piece(12, 2), Piece(8, 2)));
}

/// For random column shards the result covers the table and has an allowed
/// kind.
TEST_F(EvenColumnsTest, KeepsEveryRule) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    MersenneTwister dice(seed);
    int64_t minWidth = dice.oneOf<int64_t>({4, 8});
    std::vector<ShardingKind> kinds = {ShardingKind::ColumnWise};
    if (dice.chance(50))
      kinds.push_back(ShardingKind::TableWise);
    allow(kinds, minWidth);
    std::vector<Piece> pieces;
    for (int64_t i = dice.between(2, 5); i > 0; --i)
      pieces.emplace_back(minWidth + 4 * dice.between(0, 5),
                          static_cast<int>(dice.between(0, 2)));
    even(pieces);
    EXPECT_EQ(text(verify(plan, problem)), "") << seed;
  }
}

} // namespace
