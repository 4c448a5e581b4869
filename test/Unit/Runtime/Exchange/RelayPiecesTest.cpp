//===- RelayPiecesTest.cpp - Relayed values in pieces ---------------------===//
//
// Shows that pieces change no bit, that each is looked up while those before it
// travel, and that their buffers are those of the plan.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/RelayPieces.h"
#include "Device/Device.h"
#include "PhaseRecord.h"
#include "RandomSteps.h"
#include "RankGroups.h"
#include "Trial.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"
#include "neuroshard/Artifact/StepBuffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

using namespace neuroshard::test;
using neuroshard::Phase;
using neuroshard::WireFormat;
using neuroshard::WireType;

namespace {

/// Results of 240 columns by relay, and some that go directly.
struct WideModel {
  WideModel(RankGroups groups, WireType wire)
      : model{{{"split", 40, 12, Element::F32}, {"whole", 16, 8, Element::F32}},
              {{8, false, 3, {{1, 2}, {0, 2, Pool::None}}}},
              Optimizer::Adagrad,
              0.5f,
              true,
              wire,
              std::move(groups)} {
    for (int i = 0; i < 20; ++i)
      model.exchanges[0].lookups.push_back(
          {0, i % 3, i % 2 ? Pool::Mean : Pool::Sum});
    shards = {{1, 0, 16, 0, 8, {1}}};
    auto devices =
        static_cast<int>(model.groups.size() * model.groups[0].size());
    for (int d = 0; d < devices; ++d)
      shards.push_back(
          {0, 40 * d / devices, 40 * (d + 1) / devices, 0, 12, {d}});
  }

  Model model;
  std::vector<ShardPlace> shards;
};

int64_t piecesOf(const TestWorld &world, int64_t batch, WireFormat format) {
  const nsrt_device *device = nsrt_world_device(world.get(), 0);
  auto devices = device->numDevices();
  std::vector<int64_t> batches(static_cast<size_t>(devices), batch / devices);
  neuroshard::HierarchicalSizes sizes(device->layout(0), device->plan->groups,
                                      batches, format);
  return neuroshard::relayPieces(sizes.relayBytes());
}

std::vector<neuroshard::BufferBytes> takenBytes(const TestWorld &world) {
  std::vector<neuroshard::BufferBytes> bytes;
  for (int32_t i = 0; i < nsrt_world_num_devices(world.get()); ++i)
    bytes.push_back(nsrt_world_device(world.get(), i)->buffers->askedBytes());
  return bytes;
}

TEST(RelayPieces, HaveTheBitsOfOneMessage) {
  // A batch of so many samples takes a piece; pieces differ by a sample.
  const int64_t bagsOfPiece = 4 * 2200;
  WideModel wide(kMixedPairs, WireType());
  Trial both(wide.model, wide.shards, 4, Data::Integers, 6);
  for (int64_t pieces : {2, 4}) {
    int64_t batch = bagsOfPiece * pieces + 3;
    ASSERT_EQ(piecesOf(both.world, batch, WireFormat::F32), pieces);
    both.expectSameForward({batch});
  }
  int64_t batch = bagsOfPiece * 3 + 3;
  std::vector<Batch> batches = both.maker.batches({batch});
  std::vector<Values> gradients = both.maker.gradients(both.oracle, batches);
  std::vector<neuroshard::BufferBytes> before = takenBytes(both.world);
  both.train(batches, gradients, 0.125f, 1);
  both.expectSameTables();
  std::vector<neuroshard::BufferBytes> after = takenBytes(both.world);
  const neuroshard::Manifest &artifact =
      nsrt_world_device(both.world.get(), 0)->manifest();
  std::vector<neuroshard::BufferBytes> planned = neuroshard::stepBuffers(
      artifact, artifact.layouts, loadOf(artifact, artifact.layouts, batches),
      neuroshard::Engine::Cpu);
  for (size_t rank = 0; rank < planned.size(); ++rank)
    for (size_t i = 0; i < neuroshard::kNumBufferKinds; ++i) {
      auto kind = static_cast<neuroshard::BufferKind>(i);
      EXPECT_EQ(after[rank][kind] - before[rank][kind], planned[rank][kind])
          << neuroshard::bufferName(kind);
    }
}

TEST(RelayPieces, AreLookedUpWhileOthersTravel) {
  WideModel wide(kTwoPairs, WireType());
  Trial both(wide.model, wide.shards, 4, Data::Integers, 8);
  const int64_t batch = 4 * 2200 * 3;
  ASSERT_EQ(piecesOf(both.world, batch, WireFormat::F32), 3);
  PhaseRecord record;
  both.expectSameForward({batch});
  EXPECT_EQ(record.ofThreads.size(), 4);
  for (const auto &[thread, phases] : record.ofThreads) {
    auto lookups = std::ranges::find(phases, Phase::Lookup);
    auto sends = std::find(lookups, phases.end(), Phase::ResultsExchange);
    ASSERT_GE(phases.end() - sends, 5);
    EXPECT_THAT(std::vector(sends - 1, sends + 5),
                testing::ElementsAre(Phase::Lookup, Phase::ResultsExchange,
                                     Phase::Lookup, Phase::ResultsExchange,
                                     Phase::Lookup, Phase::ResultsExchange));
  }
}

TEST(RelayPieces, TakeTwiceAsManySamplesInHalfTheBytes) {
  WideModel wide(kTwoPairs, WireFormat::F16);
  Trial both(wide.model, wide.shards, 4, Data::Integers, 7);
  int64_t batch = 4 * 4400 * 2 + 1;
  ASSERT_EQ(piecesOf(both.world, batch, WireFormat::F16), 2);
  both.expectSameForward({batch});
}

TEST(RelayPieces, RanksMayHaveLessSamplesThanPieces) {
  EXPECT_EQ(neuroshard::samplesOfPiece(3, 0, 4).size(), 0);
  EXPECT_EQ(neuroshard::samplesOfPiece(3, 1, 4), (neuroshard::Range{0, 1}));
  EXPECT_EQ(neuroshard::samplesOfPiece(3, 3, 4), (neuroshard::Range{2, 3}));
  EXPECT_EQ(neuroshard::relayPieces(0), 1);
  EXPECT_EQ(neuroshard::relayPieces(3.5 * neuroshard::kLeastPieceBytes), 3);
  EXPECT_EQ(neuroshard::relayPieces(1e12), neuroshard::kMostRelayPieces);
}

} // namespace
