//===- RandomSteps.cpp - Random plans and the steps they run --------------===//
//
// Cuts tables at random, and counts the ids of batches by bucket.
//
//===----------------------------------------------------------------------===//

#include "RandomSteps.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace neuroshard::test {

RandomPlan::RandomPlan(std::mt19937 &random) : random(random) {
  model = makeModel(below(2) ? test::Optimizer::RowwiseAdagrad
                             : test::Optimizer::Sgd);
  model.exchanges[0].idBytes = model.exchanges[1].idBytes = below(2) ? 4 : 8;
  devices = 2 << below(3);
  model.wire.results = kWireFormats[below(5)];
  model.wire.gradients = kWireFormats[below(5)];
  if (devices >= 4 && below(2))
    for (int d = 0; d < devices; d += 2)
      model.groups.push_back({d, d + 1});
  for (size_t table = 0; table < model.tables.size(); ++table)
    place(static_cast<int>(table));
  batches =
      below(2) ? std::vector<int64_t>{180, 95} : std::vector<int64_t>{9, 14};
}

int64_t RandomPlan::below(int64_t count) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}

std::vector<int64_t> RandomPlan::cuts(int64_t size, int64_t count) {
  std::set<int64_t> bounds = {0, size};
  for (int64_t i = 1; i < count; ++i)
    bounds.insert(below(size));
  return {bounds.begin(), bounds.end()};
}

/// One, or, of a copied shard, several.
std::vector<int> RandomPlan::someDevices() {
  std::set<int> some;
  for (int64_t i = below(4) == 0 ? 1 + below(devices) : 1; i > 0; --i)
    some.insert(static_cast<int>(below(devices)));
  return {some.begin(), some.end()};
}

/// One of three shards on one device is in tier "ssd".
ShardPlace RandomPlan::withCache(ShardPlace shard) {
  if (shard.devices.size() == 1 && below(3) == 0)
    shard.cache = {kCacheWays,
                   below(2) == 0 ? CachePolicy::Lru : CachePolicy::Lfu};
  return shard;
}

/// Copies that are averaged after each step. Columns must not exchange norms.
void RandomPlan::placeDrifting(int index) {
  const test::Table &table = model.tables[static_cast<size_t>(index)];
  std::vector<int64_t> rows = cuts(table.rows, 1 + below(3));
  std::vector<int64_t> cols = cuts(
      table.dim, model.optimizer == test::Optimizer::Sgd ? 1 + below(2) : 1);
  auto copies = static_cast<size_t>(2 + below(devices - 1));
  std::vector<int> all(static_cast<size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  for (size_t r = 0; r + 1 < rows.size(); ++r)
    for (size_t c = 0; c + 1 < cols.size(); ++c) {
      std::ranges::shuffle(all, random);
      std::vector<int> some(all.begin(),
                            all.begin() + static_cast<int64_t>(copies));
      std::ranges::sort(some);
      shards.push_back(
          {index, rows[r], rows[r + 1], cols[c], cols[c + 1], some, {}, 1});
    }
}

void RandomPlan::place(int index) {
  const test::Table &table = model.tables[static_cast<size_t>(index)];
  if (below(5) == 0)
    return placeDrifting(index);
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
      shards.push_back(withCache(
          {index, rows[r], rows[r + 1], cols[c], cols[c + 1], someDevices()}));
  }
}

ShardingProblem describeProblem(const RandomPlan &plan,
                                const std::string &deviceClass) {
  const Model &model = plan.model;
  ShardingProblem problem;
  problem.batch.globalSize = plan.batches[0];
  problem.batch.idType =
      model.exchanges[0].idBytes == 4 ? IdType::I32 : IdType::I64;
  problem.batch.wireType = model.wire;
  for (const test::Table &table : model.tables) {
    neuroshard::Table described;
    described.name = table.name;
    described.rows = table.rows;
    described.dim = table.dim;
    described.elementType = static_cast<ElementType>(table.type);
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
      feature.batch = plan.batches[x];
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
    shard.tier = place.cache.rows > 0 ? Tier::Ssd : Tier::Hbm;
    shard.cache = place.cache;
    shard.syncEvery = place.syncEvery;
    shards.push_back(shard);
  }
  return shards;
}

namespace {

/// Bags [begin, end) of the global batch that a rank has.
std::pair<int64_t, int64_t> bagsOf(int64_t batch, int devices, int rank) {
  int64_t base = batch / devices, extra = batch % devices;
  int64_t begin = rank * base + std::min<int64_t>(rank, extra);
  return {begin, begin + base + (rank < extra)};
}

/// The ids of some bags that a lookup updates.
void addIds(const Batch &batch, const ExchangeLookup &lookup,
            std::pair<int64_t, int64_t> bags, std::set<int64_t> &ids) {
  const auto &all = batch.ids[static_cast<size_t>(lookup.feature)];
  for (int64_t bag = bags.first; bag < bags.second; ++bag)
    for (int64_t id : all[static_cast<size_t>(bag)])
      if (id != lookup.paddingIdx) // padding updates nothing
        ids.insert(id);
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
    load.idsOfBucket.push_back(
        std::make_shared<const std::vector<int64_t>>(std::move(ids)));
  }
  return load;
}

} // namespace

StepLoad loadOf(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const std::vector<Batch> &batches) {
  StepLoad load;
  for (size_t x = 0; x < layouts.size(); ++x)
    load.exchanges.push_back(exchangeLoad(layouts[x], plan.exchanges[x],
                                          batches[x], plan.numDevices));
  load.distinctRows = [plan, batches](int32_t table, const Range &rows,
                                      const Readers &ranks) {
    std::set<int64_t> distinct;
    for (size_t x = 0; x < batches.size(); ++x)
      for (const ExchangeLookup &lookup : plan.exchanges[x].lookups)
        for (int rank = 0; lookup.table == table && rank < plan.numDevices;
             ++rank)
          if (ranks.contains(rank))
            addIds(batches[x], lookup,
                   bagsOf(batches[x].size, plan.numDevices, rank), distinct);
    int64_t count = 0;
    for (int64_t row : distinct)
      count += row >= rows.begin && row < rows.end;
    return count;
  };
  return load;
}

} // namespace neuroshard::test
