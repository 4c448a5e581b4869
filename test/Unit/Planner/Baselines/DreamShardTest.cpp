//===- DreamShardTest.cpp - The placement MDP and its search --------------===//

#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/PlacementMdp.h"
#include "neuroshard/Planner/Verify.h"

#include <gmock/gmock.h>

using namespace neuroshard;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Score = std::function<float(size_t, const PlacementDevice &, size_t)>;

/// Scores by a function of (piece, device, its index).
class TestPolicy final : public PlacementPolicy {
public:
  explicit TestPolicy(Score score) : score(std::move(score)) {}
  std::string name() const override { return "test"; }
  std::unique_ptr<PlacementPlayer> play(const PlacementTask &) const override {
    return std::make_unique<Player>(score);
  }

private:
  class Player final : public PlacementPlayer {
  public:
    explicit Player(Score score) : score(std::move(score)) {}
    void reset() override {}
    void placed(size_t, int) override {}
    void scores(size_t piece, std::span<const PlacementDevice> devices,
                std::span<float> out) override {
      for (size_t d = 0; d < devices.size(); ++d)
        out[d] = score(piece, devices[d], d);
    }

  private:
    Score score;
  };
  Score score;
};

/// Tables of dim 16 with these rows; 64 bytes a row.
ShardingProblem rowsProblem(const std::vector<int64_t> &rows, int devices,
                            int64_t deviceRows) {
  ShardingProblem problem;
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = 1024;
  for (size_t i = 0; i < rows.size(); ++i) {
    Table table;
    table.name = std::string("t").append(std::to_string(i));
    table.rows = rows[i];
    table.dim = 16;
    Feature feature;
    feature.name = table.name;
    feature.table = static_cast<int>(i);
    // Later tables cost more.
    feature.meanPooling = 1 + static_cast<double>(i);
    problem.tables.push_back(table);
    problem.features.push_back(feature);
  }
  problem.topology = *parseTopology(std::to_string(devices).append("xH200"));
  for (Device &device : problem.topology.devices)
    device.memoryBytes = 64 * deviceRows;
  return problem;
}

SearchOptions dreamShard(const PlacementPolicy &policy) {
  SearchOptions options;
  options.algorithm = Algorithm::DreamShard;
  options.policy = &policy;
  return options;
}

std::vector<int> devicesOf(const ShardingPlan &plan) {
  std::vector<int> devices;
  for (const Shard &shard : plan.shards)
    devices.push_back(shard.devices.front());
  return devices;
}

} // namespace

TEST(DreamShardTest, WithoutAPolicyItSaysWhatIsMissing) {
  ShardingProblem problem = rowsProblem({10, 10}, 2, 100);
  SearchOptions options;
  options.algorithm = Algorithm::DreamShard;
  auto result = search(problem, *makeRooflineModel(), options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().limit, Limit::BadInput);
  EXPECT_THAT(result.error().str(), HasSubstr("needs a placement policy"));
}

TEST(DreamShardTest, TakesTheHighestScoreAndTheFirstOfEqualOnes) {
  ShardingProblem problem = rowsProblem({10, 10, 10}, 3, 100);
  TestPolicy last(
      [](size_t, const auto &, size_t d) { return static_cast<float>(d); });
  TestPolicy equal([](size_t, const auto &, size_t) { return 1.0f; });
  auto model = makeRooflineModel();
  EXPECT_THAT(devicesOf(search(problem, *model, dreamShard(last))->plan),
              ElementsAre(2, 2, 2));
  EXPECT_THAT(devicesOf(search(problem, *model, dreamShard(equal))->plan),
              ElementsAre(0, 0, 0));
}

TEST(DreamShardTest, CostliestPiecesComeFirst) {
  ShardingProblem problem = rowsProblem({10, 10, 10}, 2, 100);
  auto model = makeRooflineModel();
  auto mdp = PlacementMdp::make(problem, *model, {});
  ASSERT_TRUE(mdp);
  EXPECT_THAT(mdp->order(), ElementsAre(2, 1, 0));
}

TEST(DreamShardTest, ShowsTheDevicesAsThePieceFindsThem) {
  ShardingProblem problem = rowsProblem({25, 50}, 2, 100);
  auto model = makeRooflineModel();
  auto mdp = PlacementMdp::make(problem, *model, {});
  ASSERT_TRUE(mdp);
  mdp->place(1);
  std::span<const PlacementDevice> devices = mdp->devices();
  EXPECT_DOUBLE_EQ(devices[0].memoryShare, 0);
  EXPECT_DOUBLE_EQ(devices[0].memoryShareAfter, 0.25);
  EXPECT_DOUBLE_EQ(devices[1].memoryShare, 0.5);
  EXPECT_DOUBLE_EQ(devices[1].memoryShareAfter, 0.75);
  EXPECT_EQ(devices[0].compute.total(), 0);
  // The table alone, and with the table on that device.
  EXPECT_DOUBLE_EQ(devices[0].computeAfter.total(),
                   mdp->task().pieces[0].aloneMs);
  EXPECT_GT(devices[1].computeAfter.total(), devices[1].compute.total());
  EXPECT_GT(devices[1].exchangeBytes, 0);
}

TEST(DreamShardTest, TheCostIsThatOfThePlan) {
  ShardingProblem problem = rowsProblem({10, 20, 30, 40}, 2, 100);
  auto model = makeRooflineModel();
  TestPolicy parity(
      [](size_t piece, const auto &, size_t d) { return piece % 2 == d; });
  auto mdp = PlacementMdp::make(problem, *model, {});
  ASSERT_TRUE(mdp);
  ASSERT_TRUE(playEpisode(*mdp, *parity.play(mdp->task())));
  auto result = search(problem, *model, dreamShard(parity));
  ASSERT_TRUE(result);
  EXPECT_THAT(devicesOf(result->plan), ElementsAre(0, 1, 0, 1));
  EXPECT_DOUBLE_EQ(result->breakdown.costMs, mdp->costMs());
  EXPECT_EQ(result->plan.provenance.algorithm, "dreamshard");
}

TEST(DreamShardTest, MemoryAndRulesMaskDevices) {
  ShardingProblem problem = rowsProblem({60, 60, 30}, 3, 100);
  problem.constraints.forbids = {{2, {0}}};
  TestPolicy first(
      [](size_t, const auto &, size_t d) { return -static_cast<float>(d); });
  auto result = search(problem, *makeRooflineModel(), dreamShard(first));
  ASSERT_TRUE(result);
  // t2 comes first and may not go to 0; t1 to 0; t0 fits beside t2 only.
  EXPECT_THAT(devicesOf(result->plan), ElementsAre(1, 0, 1));
}

TEST(DreamShardTest, PinnedAndHandWrittenShardsStay) {
  ShardingProblem problem = rowsProblem({10, 10, 10}, 3, 100);
  problem.constraints.pins = {{0, {2}}};
  Shard hand;
  hand.name = "hand";
  hand.table = "t1";
  hand.rowEnd = 10;
  hand.colEnd = 16;
  hand.devices = {1};
  problem.constraints.fixedShards = {hand};
  TestPolicy first(
      [](size_t, const auto &, size_t d) { return -static_cast<float>(d); });
  auto result = search(problem, *makeRooflineModel(), dreamShard(first));
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_THAT(devicesOf(result->plan), ElementsAre(2, 1, 0));
}

TEST(DreamShardTest, ADeadEndIsLeftByChance) {
  // The policy spreads the two small tables, which come first, and the large
  // one fits nowhere; it fits when chance puts the small ones together.
  ShardingProblem problem = rowsProblem({90, 40, 40}, 2, 100);
  TestPolicy spread([](size_t piece, const auto &, size_t d) {
    return piece == 1 + d ? 1.0f : 0.0f;
  });
  auto result = search(problem, *makeRooflineModel(), dreamShard(spread));
  ASSERT_TRUE(result) << result.error().str();
  std::vector<int> devices = devicesOf(result->plan);
  EXPECT_EQ(devices[1], devices[2]);
  EXPECT_NE(devices[0], devices[1]);
  EXPECT_TRUE(verify(result->plan, problem).empty());
}

TEST(DreamShardTest, NoRoomIsAPlanningError) {
  // Three tables of more than half a device on two devices.
  ShardingProblem problem = rowsProblem({60, 60, 60}, 2, 100);
  TestPolicy equal([](size_t, const auto &, size_t) { return 1.0f; });
  auto result = search(problem, *makeRooflineModel(), dreamShard(equal));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().limit, Limit::Algorithm);
}

TEST(DreamShardTest, SamplesNeverMakeItWorseAndDependOnTheSeedOnly) {
  ShardingProblem problem =
      rowsProblem({10, 20, 30, 40, 50, 60, 70, 80}, 4, 400);
  TestPolicy equal([](size_t, const auto &, size_t) { return 1.0f; });
  auto model = makeRooflineModel();
  SearchOptions options = dreamShard(equal);
  double greedy = search(problem, *model, options)->breakdown.costMs;
  options.policySamples = 20;
  options.seed = 7;
  auto first = search(problem, *model, options);
  auto again = search(problem, *model, options);
  EXPECT_LT(first->breakdown.costMs, greedy);
  EXPECT_EQ(first->plan, again->plan);
  EXPECT_EQ(first->evaluations, 21);
}
