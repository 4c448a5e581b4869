//===- TrafficTest.cpp - Bytes that travel are those that were planned ----===//
//
// Shows that the planner, the artifact and a running step agree on what every
// device sends, byte for byte: on random cuts, with and without groups, for all
// wire types.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/Traffic.h"
#include "Oracle.h"
#include "TestModels.h"
#include "neuroshard/Artifact/StepTraffic.h"
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
    model = makeModel(below(2) ? test::Optimizer::RowwiseAdagrad
                               : test::Optimizer::Sgd);
    model.exchanges[0].idBytes = model.exchanges[1].idBytes = below(2) ? 4 : 8;
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

constexpr int64_t kBatches[] = {9, 14}; ///< of the exchanges.

/// What a planner is told of the model on devices of a class.
ShardingProblem describeProblem(const RandomPlan &plan,
                                const std::string &deviceClass) {
  const Model &model = plan.model;
  ShardingProblem problem;
  problem.batch.globalSize = kBatches[0];
  problem.batch.idType =
      model.exchanges[0].idBytes == 4 ? IdType::I32 : IdType::I64;
  problem.batch.wireType = static_cast<ElementType>(model.wire);
  for (const test::Table &table : model.tables) {
    neuroshard::Table described;
    described.name = table.name;
    described.rows = table.rows;
    described.dim = table.dim;
    if (model.optimizer == test::Optimizer::RowwiseAdagrad)
      described.optimizer.kind = OptimizerKind::RowWiseAdagrad;
    problem.tables.push_back(described);
  }
  for (size_t x = 0; x < model.exchanges.size(); ++x)
    for (const test::Lookup &lookup : model.exchanges[x].lookups) {
      Feature feature;
      feature.table = lookup.table;
      feature.pooling = static_cast<Pooling>(lookup.pooling);
      feature.weighted = lookup.weighted;
      feature.batch = kBatches[x];
      problem.features.push_back(feature);
    }
  auto devices = static_cast<size_t>(plan.devices);
  problem.topology.devices.resize(devices);
  for (neuroshard::Device &device : problem.topology.devices)
    device.deviceClass = deviceClass;
  problem.topology.hosts.resize(1);
  problem.topology.levels = {{"all", {plan.devices}}};
  if (!model.groups.empty())
    problem.topology.levels.push_back(
        {"pair", std::vector<int>(devices / 2, 2)});
  return problem;
}

std::vector<neuroshard::Shard> describeShards(const RandomPlan &plan) {
  std::vector<neuroshard::Shard> shards;
  for (const ShardPlace &place : plan.shards) {
    neuroshard::Shard shard;
    shard.table = plan.model.tables[static_cast<size_t>(place.table)].name;
    shard.rowBegin = place.rowBegin;
    shard.rowEnd = place.rowEnd;
    shard.colBegin = place.colBegin;
    shard.colEnd = place.colEnd;
    shard.devices = place.devices;
    shards.push_back(shard);
  }
  return shards;
}

/// Bags [begin, end) of the global batch that a rank has.
std::pair<int64_t, int64_t> bagsOf(int64_t batch, int devices, int rank) {
  int64_t base = batch / devices, extra = batch % devices;
  int64_t begin = rank * base + std::min<int64_t>(rank, extra);
  return {begin, begin + base + (rank < extra)};
}

ExchangeLoad exchangeLoad(const ExchangeLayout &layout,
                          const ExchangeSpec &spec, const Batch &batch,
                          int devices) {
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

/// The step that these batches bring to a plan.
StepLoad loadOf(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const std::vector<Batch> &batches) {
  StepLoad load;
  for (size_t x = 0; x < layouts.size(); ++x)
    load.exchanges.push_back(exchangeLoad(layouts[x], plan.exchanges[x],
                                          batches[x], plan.numDevices));
  load.distinctRows = [plan, batches](int32_t table, const Range &rows) {
    std::set<int64_t> distinct;
    for (size_t x = 0; x < batches.size(); ++x)
      for (const ExchangeLookup &lookup : plan.exchanges[x].lookups)
        if (lookup.table == table)
          for (const std::vector<int64_t> &bag :
               batches[x].ids[static_cast<size_t>(lookup.feature)])
            for (int64_t id : bag)
              if (id != lookup.paddingIdx) // padding updates nothing
                distinct.insert(id);
    int64_t count = 0;
    for (int64_t row : distinct)
      count += row >= rows.begin && row < rows.end;
    return count;
  };
  return load;
}

/// What a device has sent to others in a phase.
int64_t sentBytes(nsrt_world *world, int device, const std::string &phase) {
  for (int32_t i = 0; i < nsrt_num_phases(); ++i)
    if (nsrt_phase_name(i) == phase)
      return nsrt_device_phase_bytes(nsrt_world_device(world, device), i);
  ADD_FAILURE() << "no phase " << phase;
  return 0;
}

int64_t toOthers(int device, std::initializer_list<const PairBytes *> all) {
  auto from = static_cast<size_t>(device);
  int64_t total = 0;
  for (const PairBytes *bytes : all)
    for (size_t to = 0; to < bytes->size(); ++to)
      total += to == from ? 0 : (*bytes)[from][to];
  return total;
}

void expectSent(nsrt_world *world, int device, const StepTraffic &traffic) {
  int64_t ids = 0, results = 0, gradients = 0;
  for (const ExchangeTraffic &one : traffic.exchanges) {
    ids += toOthers(device, {&one.ids});
    results += toOthers(device, {&one.results, &one.relayedResults});
    gradients +=
        toOthers(device, {&one.gradients, &one.relayedGradients, &one.copies});
  }
  EXPECT_EQ(sentBytes(world, device, "ids_exchange"), ids);
  EXPECT_EQ(sentBytes(world, device, "results_exchange"), results);
  EXPECT_EQ(sentBytes(world, device, "gradients_exchange"), gradients);
  EXPECT_EQ(sentBytes(world, device, "norm_exchange"),
            toOthers(device, {&traffic.norms}));
}

/// deviceTraffic() has the sums of stepTraffic().
void expectSums(const DeviceTraffic &sums, const StepTraffic &traffic) {
  std::vector<int64_t> forward(sums.forward.size());
  std::vector<int64_t> backward(sums.backward.size());
  auto add = [](const PairBytes &bytes, std::vector<int64_t> &to) {
    for (size_t a = 0; a < bytes.size(); ++a)
      for (size_t b = 0; b < bytes.size(); ++b)
        if (a != b)
          to[a] += bytes[a][b] + bytes[b][a];
  };
  for (const ExchangeTraffic &exchange : traffic.exchanges) {
    add(exchange.results, forward);
    add(exchange.relayedResults, forward);
    add(exchange.gradients, backward);
    add(exchange.relayedGradients, backward);
    add(exchange.copies, backward);
  }
  add(traffic.norms, backward);
  EXPECT_EQ(sums.forward, forward);
  EXPECT_EQ(sums.backward, backward);
}

TEST(Traffic, PlannedIsSent) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomPlan plan(random);
    DataMaker maker(plan.model, Data::Integers, static_cast<unsigned>(round));
    std::vector<Batch> batches = maker.batches({kBatches[0], kBatches[1]});
    Manifest artifact = parseManifest(
        writeManifest(describe(plan.model, plan.shards, plan.devices)));
    StepLoad load = loadOf(artifact, artifact.layouts, batches);
    auto sent = [&](Engine engine) {
      return stepTraffic(artifact, artifact.layouts, load, engine);
    };
    StepTraffic onCpus = sent(Engine::Cpu);
    for (Engine engine : {Engine::Cpu, Engine::Gpu})
      expectSums(deviceTraffic(artifact, artifact.layouts, load, engine),
                 sent(engine));
    std::vector<neuroshard::Shard> shards = describeShards(plan);
    EXPECT_EQ(planTraffic(describeProblem(plan, "CPU"), shards, load), onCpus);
    EXPECT_EQ(planTraffic(describeProblem(plan, "H200"), shards, load),
              sent(Engine::Gpu));

    TestWorld world(plan.model, plan.shards, plan.devices);
    ASSERT_TRUE(world.get()) << world.error();
    Oracle oracle(plan.model);
    StepResult result;
    ASSERT_TRUE(
        world.train(batches, maker.gradients(oracle, batches), 0.1F, 1, result))
        << world.error();
    for (int device = 0; device < plan.devices; ++device)
      expectSent(world.get(), device, onCpus);
  }
}

} // namespace
} // namespace neuroshard::test
