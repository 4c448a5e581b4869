//===- Traffic.cpp - Traffic and buffers of a plan's steps ----------------===//

#include "neuroshard/Planner/Traffic.h"

#include "Memory/CopyShares.h"
#include "Memory/UpdateMemory.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

using namespace neuroshard;

namespace {

ExchangeSpec describeExchange(const ShardingProblem &problem,
                              const std::vector<int> &features) {
  ExchangeSpec exchange;
  exchange.idType = problem.batch.idType;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    ExchangeLookup lookup;
    lookup.table = feature.table;
    lookup.feature = static_cast<int32_t>(exchange.features.size());
    lookup.pooling = feature.pooling;
    lookup.weighted = feature.weighted;
    lookup.resultType = problem.batch.outputType;
    exchange.weighted = exchange.weighted || feature.weighted;
    exchange.features.push_back(feature.name);
    exchange.lookups.push_back(lookup);
  }
  return exchange;
}

void addShards(const ShardingProblem &problem, std::span<const Shard> shards,
               ExchangePlan &plan) {
  std::unordered_map<std::string_view, int32_t> tableOfName;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, static_cast<int32_t>(i));
  for (const Shard &shard : shards) {
    auto table = tableOfName.find(shard.table);
    bool isOnKnown = std::all_of(
        shard.devices.begin(), shard.devices.end(),
        [&](int device) { return device >= 0 && device < plan.numDevices; });
    if (table == tableOfName.end() || !isOnKnown || shard.devices.empty())
      continue;
    ShardSpec &spec = plan.shards.emplace_back();
    spec = {shard.name,
            table->second,
            {shard.rowBegin, shard.rowEnd},
            {shard.colBegin, shard.colEnd},
            {shard.devices.begin(), shard.devices.end()},
            shard.tier,
            shard.cache,
            shard.route,
            shard.syncEvery};
    std::ranges::sort(spec.devices);
  }
}

/// Each device looks its shards up for all lookups of their tables.
void bindShards(ExchangePlan &plan) {
  std::vector<std::vector<LookupBinding>> lookupsOfTable(plan.tables.size());
  for (size_t x = 0; x < plan.exchanges.size(); ++x)
    for (size_t k = 0; k < plan.exchanges[x].lookups.size(); ++k)
      lookupsOfTable[static_cast<size_t>(plan.exchanges[x].lookups[k].table)]
          .push_back({static_cast<int32_t>(x), static_cast<int32_t>(k), 0});
  plan.bindings.resize(static_cast<size_t>(plan.numDevices));
  for (size_t s = 0; s < plan.shards.size(); ++s)
    for (int32_t device : plan.shards[s].devices) {
      DeviceBinding &binding = plan.bindings[static_cast<size_t>(device)];
      auto slot = static_cast<int32_t>(binding.slots.size());
      binding.slots.push_back(static_cast<int32_t>(s));
      for (LookupBinding bound :
           lookupsOfTable[static_cast<size_t>(plan.shards[s].table)]) {
        bound.slot = slot;
        binding.lookups.push_back(bound);
      }
    }
}

int64_t rounded(double value) { return std::llround(value); }
int64_t roundedUp(double value) {
  return static_cast<int64_t>(std::ceil(value));
}

/// A step of the samples of each device, with `idsOf(feature, samples)` ids, of
/// which a bucket has the share of its rows, made a number by `count`.
template <typename IdsOf, typename Count>
StepLoad spreadEvenly(const ShardingProblem &problem, const ExchangePlan &plan,
                      const std::vector<ExchangeLayout> &layouts,
                      const IdsOf &idsOf, const Count &count) {
  StepLoad load;
  std::vector<std::vector<int>> exchanges = featuresOfExchanges(problem);
  for (size_t x = 0; x < exchanges.size(); ++x) {
    ExchangeLoad &exchange = load.exchanges.emplace_back();
    int64_t batch = featureBatch(
        problem, problem.features[static_cast<size_t>(exchanges[x].front())]);
    auto idsOfBuckets = [&](int64_t samples) {
      std::vector<int64_t> ids;
      for (const BucketLayout &bucket : layouts[x].buckets) {
        const Feature &feature = problem.features[static_cast<size_t>(
            exchanges[x][static_cast<size_t>(bucket.lookup)])];
        ids.push_back(
            count(idsOf(feature, static_cast<double>(samples)) *
                  lookupShareOfRows(
                      problem.tables[static_cast<size_t>(feature.table)],
                      bucket.rows.begin, bucket.rows.end)));
      }
      return std::make_shared<const std::vector<int64_t>>(std::move(ids));
    };
    for (int64_t rank = 0; rank < plan.numDevices; ++rank) {
      int64_t samples =
          batch / plan.numDevices + (rank < batch % plan.numDevices ? 1 : 0);
      bool isLikeLast = rank > 0 && exchange.batches.back() == samples;
      exchange.idsOfBucket.push_back(isLikeLast ? exchange.idsOfBucket.back()
                                                : idsOfBuckets(samples));
      exchange.batches.push_back(samples);
    }
  }
  return load;
}

} // namespace

std::vector<std::vector<int>>
neuroshard::featuresOfExchanges(const ShardingProblem &problem) {
  std::vector<std::vector<int>> exchanges;
  std::unordered_map<int64_t, size_t> exchangeOfBatch;
  for (size_t i = 0; i < problem.features.size(); ++i) {
    auto [found, isNew] = exchangeOfBatch.try_emplace(
        featureBatch(problem, problem.features[i]), exchanges.size());
    if (isNew)
      exchanges.emplace_back();
    exchanges[found->second].push_back(static_cast<int>(i));
  }
  return exchanges;
}

ExchangePlan neuroshard::exchangePlan(const ShardingProblem &problem,
                                      std::span<const Shard> shards) {
  ExchangePlan plan;
  plan.numDevices = problem.topology.deviceCount();
  plan.optimizerSemantics = problem.optimizerSemantics;
  plan.wireType = problem.batch.wireType;
  plan.groups = innermostGroups(problem.topology);
  for (const Table &table : problem.tables)
    plan.tables.push_back({table.name, table.rows, table.dim, table.elementType,
                           table.optimizer});
  for (const std::vector<int> &features : featuresOfExchanges(problem))
    plan.exchanges.push_back(describeExchange(problem, features));
  addShards(problem, shards, plan);
  bindShards(plan);
  return plan;
}

StepLoad neuroshard::expectedLoad(const ShardingProblem &problem,
                                  const ExchangePlan &plan,
                                  const std::vector<ExchangeLayout> &layouts) {
  StepLoad load = spreadEvenly(
      problem, plan, layouts,
      [](const Feature &feature, double samples) {
        return samples * feature.presence * feature.meanPooling;
      },
      rounded);
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  int32_t devices = plan.numDevices;
  load.distinctRows = [&problem, features, devices](int32_t index,
                                                    const Range &rows,
                                                    const Readers &ranks) {
    return rounded(
        distinctRowsOf(problem, index, features[static_cast<size_t>(index)],
                       ranks.shareOf(devices), rows.begin, rows.end));
  };
  return load;
}

StepLoad neuroshard::fullLoad(const ShardingProblem &problem,
                              const ExchangePlan &plan,
                              const std::vector<ExchangeLayout> &layouts) {
  auto idsOf = [](const Feature &feature, double samples) {
    return samples * p99Pooling(feature);
  };
  StepLoad load = spreadEvenly(problem, plan, layouts, idsOf, roundedUp);
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  int32_t devices = plan.numDevices;
  load.distinctRows = [&problem, idsOf, features,
                       devices](int32_t index, const Range &rows,
                                const Readers &ranks) {
    const Table &table = problem.tables[static_cast<size_t>(index)];
    double share = lookupShareOfRows(table, rows.begin, rows.end);
    int64_t ids = 0;
    for (int each : features[static_cast<size_t>(index)]) {
      const Feature &feature = problem.features[static_cast<size_t>(each)];
      double samples = static_cast<double>(featureBatch(problem, feature)) *
                       ranks.shareOf(devices);
      ids += roundedUp(share * idsOf(feature, samples));
    }
    return std::min(ids, rows.size());
  };
  return load;
}

/// What travels in a step of the problem's mode.
static StepTraffic ofMode(const ShardingProblem &problem, StepTraffic traffic) {
  if (problem.mode == StepMode::Training)
    return traffic;
  auto clear = [](PairBytes &bytes) {
    for (std::vector<int64_t> &row : bytes)
      std::ranges::fill(row, 0);
  };
  for (ExchangeTraffic &one : traffic.exchanges)
    for (PairBytes *bytes :
         {&one.gradients, &one.relayedGradients, &one.copies})
      clear(*bytes);
  clear(traffic.norms);
  clear(traffic.copySums);
  clear(traffic.averages);
  return traffic;
}

static std::vector<BufferBytes>
buffersOf(const ShardingProblem &problem, const ExchangePlan &plan,
          const std::vector<ExchangeLayout> &layouts, const StepLoad &load) {
  auto *count =
      problem.mode == StepMode::Inference ? lookupBuffers : stepBuffers;
  return count(plan, layouts, load, engineOf(problem));
}

StepTraffic neuroshard::planTraffic(const ShardingProblem &problem,
                                    std::span<const Shard> shards,
                                    const StepLoad &load) {
  ExchangePlan plan = exchangePlan(problem, shards);
  return ofMode(problem,
                stepTraffic(plan, makeLayouts(plan), load, engineOf(problem)));
}

StepTraffic neuroshard::planTraffic(const ShardingProblem &problem,
                                    std::span<const Shard> shards) {
  ExchangePlan plan = exchangePlan(problem, shards);
  std::vector<ExchangeLayout> layouts = makeLayouts(plan);
  return ofMode(problem,
                stepTraffic(plan, layouts, expectedLoad(problem, plan, layouts),
                            engineOf(problem)));
}

DeviceTraffic neuroshard::planDeviceTraffic(const ShardingProblem &problem,
                                            std::span<const Shard> shards) {
  ExchangePlan plan = exchangePlan(problem, shards);
  std::vector<ExchangeLayout> layouts = makeLayouts(plan);
  DeviceTraffic traffic = deviceTraffic(
      plan, layouts, expectedLoad(problem, plan, layouts), engineOf(problem));
  if (problem.mode == StepMode::Inference)
    std::ranges::fill(traffic.backward, 0);
  return traffic;
}

std::vector<BufferBytes> neuroshard::planBuffers(const ShardingProblem &problem,
                                                 std::span<const Shard> shards,
                                                 const StepLoad &load) {
  ExchangePlan plan = exchangePlan(problem, shards);
  return buffersOf(problem, plan, makeLayouts(plan), load);
}

std::vector<BufferBytes>
neuroshard::planBuffers(const ShardingProblem &problem,
                        std::span<const Shard> shards) {
  if (!problem.snapshots.empty())
    return planBuffers(summarized(problem), shards);
  ExchangePlan plan = exchangePlan(problem, shards);
  std::vector<ExchangeLayout> layouts = makeLayouts(plan);
  return buffersOf(problem, plan, layouts, fullLoad(problem, plan, layouts));
}
