//===- CopiesTest.cpp - Shards with copies on some devices ----------------===//
//
// Shows that lookups and updates of tables whose shards have copies are those
// of one device, whatever the cuts, the groups and the wire type, and that
// copies keep the same bits.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"
#include "World/World.h"
#include "neuroshard/Artifact/CopyReaders.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

namespace neuroshard::test {
namespace {

DeviceGroups groupsOf(int32_t devices,
                      std::vector<std::vector<int32_t>> groups = {}) {
  ExchangePlan plan;
  plan.numDevices = devices;
  plan.groups = std::move(groups);
  return DeviceGroups(plan);
}

std::vector<int32_t> nearestCopies(const DeviceGroups &groups,
                                   const std::vector<int32_t> &devices) {
  std::vector<int32_t> copies;
  for (int32_t rank = 0; rank < groups.numDevices(); ++rank)
    copies.push_back(nearestCopy(groups, devices, rank));
  return copies;
}

TEST(Copies, AreReadByTheNearest) {
  using Copies = std::vector<int32_t>;
  DeviceGroups flat = groupsOf(4);
  EXPECT_EQ(nearestCopies(flat, {0, 1}), (Copies{0, 1, 1, 1}));
  EXPECT_EQ(nearestCopies(flat, {1, 2, 3}), (Copies{1, 1, 2, 3}));
  // One for each group serves its group.
  DeviceGroups pairs = groupsOf(6, {{0, 1}, {2, 3}, {4, 5}});
  EXPECT_EQ(nearestCopies(pairs, {1, 2, 5}), (Copies{1, 1, 2, 2, 5, 5}));
  // Groups without any share all of them.
  EXPECT_EQ(nearestCopies(pairs, {0, 2}), (Copies{0, 0, 2, 2, 2, 2}));
  // Two in a group share it.
  DeviceGroups fours = groupsOf(8, {{0, 1, 2, 3}, {4, 5, 6, 7}});
  EXPECT_EQ(nearestCopies(fours, {0, 1, 6}), (Copies{0, 1, 1, 1, 6, 6, 6, 6}));
}

constexpr Optimizer kOptimizers[] = {Optimizer::Sgd, Optimizer::Adagrad,
                                     Optimizer::RowwiseAdagrad,
                                     Optimizer::Adam};

struct Case {
  const char *name;
  PlanKind plan;
  int devices;
  std::vector<std::vector<int>> groups = {};
  /// Copies of a shard: so many from its device on, or one in each group.
  int copies = 0;
};

/// The plan with copies of its shards. Every fourth shard has none.
std::vector<ShardPlace> copiedPlan(const Model &model, const Case &given) {
  std::vector<ShardPlace> shards = makePlan(model, given.plan, given.devices);
  for (size_t i = 0; i < shards.size(); ++i) {
    int home = shards[i].devices.front();
    if (i % 4 == 3 || shards[i].devices.size() > 1)
      continue;
    shards[i].devices.clear();
    for (int copy = 0; copy < given.copies; ++copy)
      shards[i].devices.push_back((home + copy) % given.devices);
    for (size_t group = 0; given.copies == 0 && group < given.groups.size();
         ++group)
      shards[i].devices.push_back(
          given.groups[group][(static_cast<size_t>(home) + group) %
                              given.groups[group].size()]);
    std::ranges::sort(shards[i].devices);
  }
  return shards;
}

Model modelOf(Optimizer optimizer, const Case &given) {
  Model model = makeModel(optimizer);
  for (const std::vector<int> &group : given.groups)
    model.groups.push_back({group.begin(), group.end()});
  return model;
}

class CopiesOf : public testing::TestWithParam<Case> {};

const std::vector<std::vector<int>> kPairs = {{0, 1}, {2, 3}};
const std::vector<std::vector<int>> kThrees = {{0, 1, 2}, {3, 4, 5}};
const std::vector<std::vector<int>> kThreePairs = {{4, 5}, {0, 2}, {1, 3}};

INSTANTIATE_TEST_SUITE_P(
    All, CopiesOf,
    testing::Values(
        Case{"TwoOfTwo", PlanKind::Row, 2, {}, 2},
        Case{"TwoOfThree", PlanKind::TableWise, 3, {}, 2},
        Case{"TwoOfFour", PlanKind::Column, 4, {}, 2},
        Case{"ThreeOfFour", PlanKind::RowColumn, 4, {}, 3},
        Case{"RowsOnAllOfFour", PlanKind::Row, 4, {}, 4},
        Case{"MixedTwoOfFive", PlanKind::Mixed, 5, {}, 2},
        Case{"TablePerPair", PlanKind::TableWise, 4, kPairs},
        Case{"ColumnsPerPair", PlanKind::Column, 4, kPairs},
        Case{"RowsPerPair", PlanKind::Row, 4, kPairs},
        Case{"RowsAndColumnsPerThree", PlanKind::RowColumn, 6, kThrees},
        Case{"MixedPerMixedPair", PlanKind::Mixed, 6, kThreePairs},
        Case{"TwoOfSixInPairs", PlanKind::RowColumn, 6, kThreePairs, 2},
        Case{"FourOfSixInThrees", PlanKind::Column, 6, kThrees, 4}),
    [](const auto &info) { return info.param.name; });

TEST_P(CopiesOf, LookUpAsOneDeviceDoes) {
  Model model = modelOf(Optimizer::Sgd, GetParam());
  Trial both(model, copiedPlan(model, GetParam()), GetParam().devices,
             Data::Integers, 21);
  for (int64_t size : {40, 1, 3, 0})
    both.expectSameForward({size, size / 2});
}

TEST_P(CopiesOf, UpdateAsOneDeviceDoes) {
  for (Optimizer optimizer : kOptimizers)
    for (int threads : {1, 3}) {
      Model model = modelOf(optimizer, GetParam());
      Trial both(model, copiedPlan(model, GetParam()), GetParam().devices,
                 Data::Integers, 22, threads);
      int states = optimizer == Optimizer::Adam  ? 2
                   : optimizer == Optimizer::Sgd ? 0
                                                 : 1;
      int64_t step = 1;
      for (int64_t size : {100, 1, 0, 7}) {
        both.train({size, 2 * size}, 0.125f, step++);
        both.expectSameTables(states);
        // Later dot products over column shards add in another order.
        if (step == 2)
          EXPECT_EQ(both.result.weightGradients[0],
                    both.expected.weightGradients[0]);
      }
    }
}

/// By shard, the bytes of each of its copies, weights and states.
std::map<std::string, std::vector<std::vector<std::byte>>>
bytesOfCopies(TestWorld &world, int devices) {
  std::map<std::string, std::vector<std::vector<std::byte>>> bytes;
  for (int device = 0; device < devices; ++device)
    for (const runtime::Shard &shard : world.get()->device(device)->slots) {
      int64_t rowBytes =
          paddedRowBytes(shard.spec().cols.size(), shard.table().elementType);
      auto *first = static_cast<const std::byte *>(shard.weights());
      int64_t rows = shard.spec().rows.size();
      std::vector<std::byte> &copy =
          bytes[shard.spec().name].emplace_back(first, first + rows * rowBytes);
      for (size_t i = 0; shard.state(i); ++i) {
        auto *state = reinterpret_cast<const std::byte *>(shard.state(i));
        copy.insert(copy.end(), state,
                    state + rows * shard.stateStride(i) *
                                static_cast<int64_t>(sizeof(float)));
      }
    }
  return bytes;
}

/// After 50 steps, which are compared with one device's if all travels as f32.
void expectTheSameBits(const Case &given, Optimizer optimizer, WireType wire) {
  Model model = modelOf(optimizer, given);
  model.wire = wire;
  Trial both(model, copiedPlan(model, given), given.devices, Data::Reals, 23);
  for (int64_t step = 1; step <= 50; ++step)
    both.train({step % 5 == 0 ? 3 : 2 * step, step}, 0.01f, step);
  bool anyCopies = false;
  for (const auto &[shard, copies] : bytesOfCopies(both.world, given.devices))
    for (size_t copy = 1; copy < copies.size(); ++copy) {
      EXPECT_EQ(copies[copy], copies[0]) << shard;
      anyCopies = true;
    }
  EXPECT_TRUE(anyCopies);
  if (wire != WireType())
    return;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    Values::value_type found = both.world.table(static_cast<int>(t));
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], both.oracle.tables[t][i], 2e-2) << t;
  }
}

// With each wire type another optimizer, all with NEUROSHARD_ALL=1.
TEST_P(CopiesOf, KeepTheSameBits) {
  bool all = std::getenv("NEUROSHARD_ALL") != nullptr;
  auto number = static_cast<size_t>(GetParam().devices + GetParam().copies);
  std::vector<WireType> wires(std::begin(kWireFormats), std::end(kWireFormats));
  wires.push_back({WireFormat::BF16, WireFormat::Int8});
  for (WireType wire : wires) {
    for (Optimizer optimizer : kOptimizers)
      if (all || optimizer == kOptimizers[number % std::size(kOptimizers)])
        expectTheSameBits(GetParam(), optimizer, wire);
    ++number;
  }
}

} // namespace
} // namespace neuroshard::test
