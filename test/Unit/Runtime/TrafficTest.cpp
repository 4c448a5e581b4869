//===- TrafficTest.cpp - Bytes that travel are those of the layout --------===//
//
// Shows that exchangeBytes() tells what a step sends, byte for byte: on random
// cuts, with and without groups, for all wire types.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"
#include "neuroshard/Artifact/ExchangeSizes.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>

namespace neuroshard::test {
namespace {

class RandomPlan {
public:
  explicit RandomPlan(std::mt19937 &random) : random(random) {
    model = makeModel(test::Optimizer::Sgd);
    devices = 2 << below(3);
    model.wire = static_cast<Element>(below(3));
    if (devices >= 4 && below(2))
      for (int d = 0; d < devices; d += 2)
        model.groups.push_back({d, d + 1});
    for (size_t table = 0; table < model.tables.size(); ++table)
      place(static_cast<int>(table));
  }

  std::mt19937 &random;
  Model model;
  int devices = 2;
  std::vector<ShardPlace> shards;

private:
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  }

  std::vector<int64_t> cuts(int64_t size, int64_t count) {
    std::set<int64_t> bounds = {0, size};
    for (int64_t i = 1; i < count; ++i)
      bounds.insert(below(size));
    return {bounds.begin(), bounds.end()};
  }

  void place(int index) {
    const test::Table &table = model.tables[static_cast<size_t>(index)];
    if (below(6) == 0) {
      std::vector<int> all(static_cast<size_t>(devices), 0);
      std::iota(all.begin(), all.end(), 0);
      shards.push_back({index, 0, table.rows, 0, table.dim, all});
      return;
    }
    std::vector<int64_t> rows = cuts(table.rows, 1 + below(4));
    for (size_t r = 0; r + 1 < rows.size(); ++r) {
      std::vector<int64_t> cols = cuts(table.dim, 1 + below(3));
      for (size_t c = 0; c + 1 < cols.size(); ++c)
        shards.push_back({index,
                          rows[r],
                          rows[r + 1],
                          cols[c],
                          cols[c + 1],
                          {static_cast<int>(below(devices))}});
    }
  }
};

/// Bags [begin, end) of the global batch that a rank has.
std::pair<int64_t, int64_t> bagsOf(int64_t batch, int devices, int rank) {
  int64_t base = batch / devices, extra = batch % devices;
  int64_t begin = rank * base + std::min<int64_t>(rank, extra);
  return {begin, begin + base + (rank < extra)};
}

ExchangeLoad loadOf(const ExchangeLayout &layout, const ExchangeSpec &spec,
                    const Batch &batch, int devices) {
  ExchangeLoad load;
  for (int rank = 0; rank < devices; ++rank) {
    auto [begin, end] = bagsOf(batch.size, devices, rank);
    load.batches.push_back(end - begin);
    std::vector<int64_t> ids;
    for (const BucketLayout &bucket : layout.buckets) {
      const ExchangeLookup &lookup =
          spec.lookups[static_cast<size_t>(bucket.lookup)];
      int64_t count = 0;
      for (int64_t bag = begin; bag < end; ++bag)
        for (int64_t id : batch.ids[static_cast<size_t>(lookup.feature)]
                                   [static_cast<size_t>(bag)]) {
          bool padding = lookup.dropsPadding() && id == *lookup.paddingIdx;
          count += !padding && id >= bucket.rows.begin && id < bucket.rows.end;
        }
      ids.push_back(count);
    }
    load.idsOfBucket.push_back(std::move(ids));
  }
  return load;
}

/// Of all devices, to others.
int64_t sentBytes(nsrt_world *world, int devices, const char *phase) {
  int64_t total = 0;
  for (int d = 0; d < devices; ++d) {
    nsrt_device *device = nsrt_world_device(world, d);
    for (int32_t i = 0; i < nsrt_num_phases(); ++i)
      if (std::string(nsrt_phase_name(i)) == phase)
        total += nsrt_device_phase_bytes(device, i);
  }
  return total;
}

int64_t toOthers(const PairBytes &bytes) {
  int64_t total = 0;
  for (size_t from = 0; from < bytes.size(); ++from)
    for (size_t to = 0; to < bytes.size(); ++to)
      total += from == to ? 0 : bytes[from][to];
  return total;
}

TEST(Traffic, IsWhatTheLayoutSays) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    RandomPlan plan(random);
    Manifest manifest = describe(plan.model, plan.shards, plan.devices);
    std::vector<ExchangeLayout> layouts = makeLayouts(manifest);
    DeviceGroups groups(manifest);
    TestWorld world(plan.model, plan.shards, plan.devices);
    ASSERT_TRUE(world.get()) << world.error();
    DataMaker maker(plan.model, Data::Integers, static_cast<unsigned>(round));
    std::vector<Batch> batches = maker.batches({9, 14});
    StepResult result;
    ASSERT_TRUE(world.forward(batches, result)) << world.error();
    int64_t ids = 0, results = 0;
    for (size_t x = 0; x < layouts.size(); ++x) {
      ExchangeBytes bytes = exchangeBytes(
          layouts[x], manifest.exchanges[x], groups, manifest.wireType,
          loadOf(layouts[x], manifest.exchanges[x], batches[x], plan.devices));
      if (!layouts[x].hasRemote)
        continue;
      ids += toOthers(bytes.ids);
      results += toOthers(bytes.results) + toOthers(bytes.relayedResults);
    }
    EXPECT_EQ(sentBytes(world.get(), plan.devices, "ids_exchange"), ids);
    EXPECT_EQ(sentBytes(world.get(), plan.devices, "results_exchange"),
              results);
  }
}

} // namespace
} // namespace neuroshard::test
