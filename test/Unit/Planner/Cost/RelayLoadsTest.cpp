//===- RelayLoadsTest.cpp - Bytes of the hierarchical all-to-all ----------===//
//
// Shows that what relays are priced by is the traffic of the plan's artifact,
// stage by stage and device by device, over the links between groups and inside
// them.
//
//===----------------------------------------------------------------------===//

#include "Cost/RelayLoads.h"
#include "Cost/StagedExchange.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Traffic.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

constexpr size_t kGroupSize = 4;

/// Eight devices in two groups.
ShardingProblem twoNodes() { return twoTables("2x4xCPU@1GiB"); }

Shard routed(Shard shard, Route route) {
  shard.route = route;
  return shard;
}

/// Bytes of each device over links to other groups, and inside its own.
struct Crossing {
  std::vector<double> across = std::vector<double>(8);
  std::vector<double> inside = std::vector<double>(8);

  bool operator==(const Crossing &) const = default;
};

/// For messages of gtest.
void PrintTo(const Crossing &bytes, std::ostream *os) {
  *os << testing::PrintToString(bytes.across) << " across, "
      << testing::PrintToString(bytes.inside) << " inside";
}

Crossing sentOf(const PairBytes &bytes) {
  Crossing sent;
  for (size_t from = 0; from < 8; ++from)
    for (size_t to = 0; to < 8; ++to)
      if (from != to)
        (from / kGroupSize == to / kGroupSize ? sent.inside
                                              : sent.across)[from] +=
            static_cast<double>(bytes[from][to]);
  return sent;
}

PairBytes transposed(const PairBytes &bytes) {
  PairBytes result = bytes;
  for (size_t from = 0; from < 8; ++from)
    for (size_t to = 0; to < 8; ++to)
      result[to][from] = bytes[from][to];
  return result;
}

Crossing crossing(const std::vector<double> &everywhere,
                  const std::vector<double> &inside,
                  const std::vector<double> &across) {
  Crossing result;
  for (size_t i = 0; i < 8; ++i) {
    result.across[i] = everywhere[i] * 4 / 8;
    result.inside[i] = everywhere[i] * 3 / 8;
    if (inside.empty())
      continue;
    result.across[i] += across[i] / 2;
    result.inside[i] += inside[i] * 3 / 4;
  }
  return result;
}

/// Results by their sender, gradients by their receiver; the other side is
/// taken to be even, and is with the own part.
void expectResults(const Traffic &stage, const PairBytes &bytes) {
  EXPECT_EQ(crossing(stage.bytesOut, stage.insideOut, stage.acrossOut),
            sentOf(bytes));
}
void expectGradients(const Traffic &stage, const PairBytes &bytes) {
  EXPECT_EQ(crossing(stage.bytesIn, stage.insideIn, stage.acrossIn),
            sentOf(transposed(bytes)));
}

/// Ids by their receiver, but for pads and the rounding of their numbers.
void expectIds(const Traffic &stage, const PairBytes &bytes) {
  Crossing expected = sentOf(transposed(bytes));
  Crossing priced = crossing(stage.bytesIn, stage.insideIn, stage.acrossIn);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(priced.across[i], expected.across[i],
                0.06 * expected.across[i]);
    EXPECT_NEAR(priced.inside[i], expected.inside[i],
                0.06 * expected.inside[i]);
  }
}

/// Pads in no message: columns are multiples of 4.
void expectTraffic(const std::vector<Shard> &shards, WireType wire) {
  ShardingProblem problem = twoNodes();
  problem.batch.wireType = wire;
  ShardingPlan plan = makePlan(problem, shards);
  std::unique_ptr<CostModel> model = makeRooflineModel();
  std::vector<DeviceLoad> loads = planLoads(problem, plan, *model);
  std::vector<RelayLoad> relays = relayLoads(problem, shards, loads);
  ExchangeTraffic traffic = planTraffic(problem, shards).exchanges.at(0);
  std::vector<Traffic> results =
      exchangeStages(problem.topology, loads, relays, Direction::Forward);
  std::vector<Traffic> gradients =
      exchangeStages(problem.topology, loads, relays, Direction::Backward);
  std::vector<Traffic> ids =
      exchangeStages(problem.topology, loads, relays, Direction::Input);
  ASSERT_EQ(ids.size(), 2U);
  expectIds(ids[0], traffic.ids);
  expectIds(ids[1], traffic.relayedIds);
  ASSERT_EQ(results.size(), relays.empty() ? 1U : 2U);
  ASSERT_EQ(gradients.size(), results.size());
  expectResults(results[0], traffic.results);
  expectGradients(gradients[0], traffic.gradients);
  if (relays.empty())
    return;
  expectResults(results[1], traffic.relayedResults);
  expectGradients(gradients[1], traffic.relayedGradients);
}

std::vector<Shard> rowsInOneGroup(Route route) {
  return {routed(makeShard("a_0", "a", 0, 400, 0, 16, {0}), route),
          routed(makeShard("a_1", "a", 400, 700, 0, 8, {1}), route),
          routed(makeShard("a_2", "a", 400, 700, 8, 16, {3}), route),
          routed(makeShard("a_3", "a", 700, 1000, 0, 16, {6}), route),
          makeShard("b", "b", 0, 500, 0, 8, {2})};
}

TEST(RelayLoadsTest, AreTheTrafficOfThePlan) {
  for (WireType wire : {WireType(), WireType(WireFormat::Int8),
                        WireType(WireFormat::Fp8, WireFormat::F16)})
    for (Route route : {Route::Auto, Route::Direct, Route::Relay}) {
      expectTraffic(rowsInOneGroup(route), wire);
      // A whole table leaves over the links of all devices of its group.
      expectTraffic({routed(makeShard("a", "a", 0, 1000, 0, 16, {5}), route),
                     makeShard("b", "b", 0, 500, 0, 8, {2})},
                    wire);
    }
}

TEST(RelayLoadsTest, NoneWithoutGroupsOrReplicatedTables) {
  std::vector<Shard> shards = rowsInOneGroup(Route::Relay);
  std::vector<DeviceLoad> loads(8);
  EXPECT_TRUE(relayLoads(twoTables("8xCPU@1GiB"), shards, loads).empty());
  shards = {
      routed(makeShard("a", "a", 0, 1000, 0, 16, {0, 1, 2, 3, 4, 5, 6, 7}),
             Route::Relay),
      makeShard("b", "b", 0, 500, 0, 8, {2})};
  EXPECT_TRUE(relayLoads(twoNodes(), shards, loads).empty());
}

// 64 samples on 8 devices; a's 16 columns of f32.
TEST(RelayLoadsTest, BuffersOfRelays) {
  ShardingProblem problem = twoNodes();
  auto bytesOf = [&](Route route) {
    std::vector<Shard> shards = {
        routed(makeShard("a", "a", 0, 1000, 0, 16, {5}), route),
        makeShard("b", "b", 0, 500, 0, 8, {2})};
    return planMemory(problem, shards).devices;
  };
  std::vector<MemoryTerms> direct = bytesOf(Route::Direct);
  std::vector<MemoryTerms> relayed = bytesOf(Route::Relay);
  int64_t results = problem.batch.globalSize * 16 * 4;
  for (size_t i = 0; i < 8; ++i) {
    int64_t ofRelay = i < kGroupSize ? 0 : 2 * results / 4;
    int64_t sorted = i == 5 ? results : 0;
    EXPECT_EQ(relayed[i].forwardBytes - direct[i].forwardBytes,
              ofRelay + sorted);
    EXPECT_EQ(relayed[i].backwardBytes - direct[i].backwardBytes, ofRelay);
  }
}

/// When results are there, of devices that look up for so long what goes by
/// relay: so many MiB from each relay.
double resultsAfterMs(double mebibytes, double lookupsMs, bool inPieces) {
  Topology topology = twoNodes().topology;
  std::unique_ptr<CostModel> model = makeRooflineModel();
  double bytes = mebibytes * (1 << 20);
  std::vector<RelayLoad> relays(
      8, {.forwardInside = bytes, .forwardAcross = bytes});
  StagedExchange exchange(*model, topology, std::vector<DeviceLoad>(8), relays,
                          Direction::Forward);
  exchange.timesMs();
  std::vector<double> makes(8, inPieces ? lookupsMs : 0);
  return std::ranges::max(
      exchange.arrivalsMs(std::vector<double>(8, lookupsMs), makes));
}

TEST(RelayLoadsTest, PiecesTravelWhileOthersAreLookedUp) {
  // Long lookups hide first stages, but for the last of four, and no second.
  double hidden = resultsAfterMs(16, 1e5, true);
  EXPECT_LT(hidden, resultsAfterMs(16, 1e5, false) - 1e-3);
  EXPECT_GT(hidden, resultsAfterMs(4, 1e5, false) + 1e-3);
  // Of short ones only that of the first piece is waited for.
  EXPECT_NEAR(resultsAfterMs(16, 1e-3, true),
              resultsAfterMs(16, 0.25e-3, false), 1e-9);
  // One piece is sent when it is there.
  EXPECT_EQ(resultsAfterMs(4, 2, true), resultsAfterMs(4, 2, false));
}

// What relays lack of a device's lookups is unpooled or goes directly.
TEST(RelayLoadsTest, LookupsOfRelayedResults) {
  ShardingProblem problem = twoNodes();
  std::vector<Shard> shards = {
      routed(makeShard("a", "a", 0, 500, 0, 16, {5}), Route::Relay),
      routed(makeShard("a", "a", 500, 1000, 0, 16, {6}), Route::Relay),
      makeShard("b", "b", 0, 500, 0, 8, {5})};
  std::unique_ptr<CostModel> model = makeRooflineModel();
  std::vector<DeviceLoad> loads =
      planLoads(problem, makePlan(problem, shards), *model);
  std::vector<RelayLoad> relays = relayLoads(problem, shards, loads);
  EXPECT_GT(relays[6].lookupValues, 0);
  EXPECT_EQ(relays[6].lookupValues, loads[6].lookupValues);
  EXPECT_EQ(relays[5].lookupValues, relays[6].lookupValues);
  EXPECT_GT(loads[5].lookupValues, relays[5].lookupValues);
  EXPECT_EQ(relays[0].lookupValues, 0);
}

// 2^20 samples: a relay sends 16 MiB of a's gradients, in four pieces, which
// the owner puts together.
TEST(RelayLoadsTest, OwnersHaveRoomForGradientsInPieces) {
  ShardingProblem problem = twoNodes();
  auto backwardOf = [&](WireType wire, int64_t samples) {
    problem.batch.wireType = wire;
    problem.batch.globalSize = samples;
    std::vector<int64_t> added;
    std::vector<MemoryTerms> ofRoute[2];
    for (Route route : {Route::Direct, Route::Relay})
      ofRoute[route == Route::Relay] =
          planMemory(
              problem,
              std::vector{
                  routed(makeShard("a", "a", 0, 1000, 0, 16, {5}), route),
                  makeShard("b", "b", 0, 500, 0, 8, {2})})
              .devices;
    for (size_t i : {4, 5})
      added.push_back(ofRoute[1][i].backwardBytes -
                      ofRoute[0][i].backwardBytes);
    return added;
  };
  const int64_t many = 1 << 20, values = 16 * many;
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(backwardOf({}, many), (Bytes{2 * values, 2 * values + 4 * values}));
  EXPECT_EQ(backwardOf(WireFormat::BF16, many), (Bytes{values, values}));
  EXPECT_EQ(backwardOf({}, many / 16), (Bytes{values / 8, values / 8}));
}

// Of the devices with a's owner in their group each gets a quarter of its ids,
// and hands it out.
TEST(RelayLoadsTest, IdsThatAreSentAheadAreHandedOutButForTheLast) {
  ShardingProblem problem = twoNodes();
  std::vector<int64_t> ofRelay, ofOwner;
  for (int copies : {1, 2, 3, 4}) {
    problem.batch.inputCopies = copies;
    std::vector<MemoryTerms> devices =
        planMemory(problem,
                   std::vector{makeShard("a", "a", 0, 1000, 0, 16, {5}),
                               makeShard("b", "b", 0, 500, 0, 8, {2})})
            .devices;
    // But for its own samples; b is to the first group what a is to the second.
    ofRelay.push_back(devices[4].idsBytes - devices[0].idsBytes);
    ofOwner.push_back(devices[5].idsBytes - devices[4].idsBytes);
  }
  int64_t ids = ofOwner[0];
  EXPECT_GT(ofRelay[1], 0);
  EXPECT_EQ(ofRelay[2] - ofRelay[1], 2 * ofRelay[1]);
  EXPECT_EQ(ofRelay[3] - ofRelay[2], 2 * ofRelay[1]);
  EXPECT_EQ(ofOwner[1], 2 * ids - ids / 4);
  EXPECT_EQ(ofOwner[2] - ofOwner[1], ids);
}

TEST(RelayLoadsTest, RelaysKeepIdsAndGradientsUntilTheUpdate) {
  ShardingProblem problem = twoNodes();
  problem.batch.globalSize = 1 << 16;
  problem.batch.inputCopies = 1;
  int64_t ids = 0;
  /// What two earlier backwards add on a relay of a's group.
  auto keptBy = [&](Route route, int64_t MemoryTerms::*phase) {
    std::vector<int64_t> bytes;
    for (int backwards : {1, 3}) {
      problem.batch.backwards = backwards;
      std::vector<MemoryTerms> devices =
          planMemory(problem,
                     std::vector{routed(
                         makeShard("a", "a", 0, 1000, 0, 16, {5}), route)})
              .devices;
      ids = devices[5].idsBytes - devices[4].idsBytes;
      bytes.push_back(devices[4].*phase - deviceBaseMemory(problem)[4].*phase);
    }
    return bytes[1] - bytes[0];
  };
  // A quarter of a's ids as they came, and as they went on; the same of the
  // gradients.
  int64_t gradients = 2 * (int64_t{16} << 16) * 4 / 4;
  for (auto phase : {&MemoryTerms::forwardBytes, &MemoryTerms::backwardBytes}) {
    EXPECT_EQ(keptBy(Route::Direct, phase), 2 * ids / 2);
    EXPECT_EQ(keptBy(Route::Relay, phase), 2 * ids / 2 + 2 * gradients);
  }
}

} // namespace
