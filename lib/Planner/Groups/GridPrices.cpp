//===- GridPrices.cpp - Prices of parts of tables on groups ---------------===//

#include "GridPrices.h"

#include "Cost/RelayLoads.h"
#include "Cost/StagedExchange.h"
#include "Units/UnitOperations.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <tuple>

using namespace neuroshard;

/// Range `index` of `count` even ones of [begin, end), cut at multiples of
/// `unit`.
static std::pair<int64_t, int64_t> rangeOf(int64_t begin, int64_t end,
                                           int64_t unit, int index, int count) {
  int64_t units = (end - begin + unit - 1) / unit;
  return {begin + units * index / count * unit,
          std::min(end, begin + units * (index + 1) / count * unit)};
}

double PartPrice::totalMs() const {
  return std::accumulate(ms.begin(), ms.end(), 0.0);
}

/// Those of one group, on each.
template <typename Load>
static std::vector<Load> onAllGroups(std::vector<Load> group, int deviceCount) {
  size_t size = group.size();
  group.resize(static_cast<size_t>(deviceCount));
  for (size_t i = size; i < group.size(); ++i)
    group[i] = group[i - size];
  return group;
}

GridPrices::GridPrices(const SearchContext &context, int groupSize,
                       const ShardingPlan &replicas)
    : context(context), groupSize(groupSize),
      replicas(describePlan(context.problem, replicas)),
      replicaLoads(planLoads(context.problem, replicas, context.model)) {
  replicaLoads.resize(static_cast<size_t>(groupSize));
  std::vector<DeviceLoad> loads = replicaLoads;
  for (DeviceLoad &load : loads)
    load.inputBytes = load.groupInputBytes = 1;
  std::vector<RelayLoad> relays(loads.size(), {1, 1, 1, 1, 0});
  none = stagesOf(loads, relays);
}

StageMs GridPrices::stagesOf(const std::vector<DeviceLoad> &group,
                             const std::vector<RelayLoad> &ofGroup) const {
  const Topology &topology = context.problem.topology;
  std::vector<DeviceLoad> loads = onAllGroups(group, context.deviceCount);
  std::vector<RelayLoad> relays = onAllGroups(ofGroup, context.deviceCount);
  // Of what comes in pieces, all but one piece of the shorter stage goes beside
  // the longer one.
  auto exchange = [&](Direction direction) {
    std::vector<double> ms;
    for (const Traffic &stage :
         exchangeStages(topology, loads, relays, direction))
      ms.push_back(std::ranges::max(
          context.model.communicationMs(stage, {}, direction)));
    ms.resize(std::max<size_t>(2, ms.size()));
    auto pieces = static_cast<double>(piecesOf(relays, direction));
    (ms[0] < ms[1] ? ms[0] : ms[1]) /= pieces;
    return ms;
  };
  std::vector<double> ids = exchange(Direction::Input);
  std::vector<double> results = exchange(Direction::Forward);
  std::vector<double> gradients = exchange(Direction::Backward);
  double forward = 0, backward = 0;
  for (const DeviceLoad &load : group) {
    forward = std::max(forward, load.compute.forwardMs);
    backward = std::max(backward, load.compute.backwardMs);
  }
  // Groups begin to hand gradients out at once, and each updates when it has
  // its own.
  return {ids[0],
          ids[1],
          forward,
          results[0],
          results[1],
          gradients[0],
          gradients[1] + backward};
}

std::vector<Shard> GridPrices::shardsOf(int table, const Grid &grid, int part,
                                        int group) const {
  const Table &source = context.table(table);
  auto [rowBegin, rowEnd] =
      rangeOf(0, source.rows, 1, part / grid.columns, grid.rows);
  auto [colBegin, colEnd] = rangeOf(0, source.dim, kColumnAlignment,
                                    part % grid.columns, grid.columns);
  std::vector<Shard> shards;
  for (int row = 0; row < grid.innerRows; ++row)
    for (int column = 0; column < grid.innerColumns; ++column) {
      Shard shard;
      shard.table = source.name;
      std::tie(shard.rowBegin, shard.rowEnd) =
          rangeOf(rowBegin, rowEnd, 1, row, grid.innerRows);
      std::tie(shard.colBegin, shard.colEnd) = rangeOf(
          colBegin, colEnd, kColumnAlignment, column, grid.innerColumns);
      followRules(context.rulesOf(table), shard);
      shard.devices = {group * groupSize + static_cast<int>(shards.size())};
      shard.route = Route::Relay;
      shards.push_back(std::move(shard));
    }
  return shards;
}

bool GridPrices::isPossible(int table, const Grid &grid) const {
  const Table &source = context.table(table);
  const TableRules &rules = context.rulesOf(table);
  int64_t rows = int64_t{grid.rows} * grid.innerRows;
  int64_t columns = int64_t{grid.columns} * grid.innerColumns;
  ShardingKind kind =
      rows > 1 ? columns > 1 ? ShardingKind::RowColumn : ShardingKind::RowWise
      : columns > 1 ? ShardingKind::ColumnWise
                    : ShardingKind::TableWise;
  int64_t units = (source.dim + kColumnAlignment - 1) / kColumnAlignment;
  int64_t narrowest =
      units / grid.columns / grid.innerColumns * kColumnAlignment;
  return rules.allows(kind) && source.rows >= rows &&
         grid.parts() * groupSize <= context.deviceCount &&
         (columns == 1 ||
          narrowest >= std::max<int64_t>(kColumnAlignment, rules.minWidth)) &&
         mayHaveRows(context, table, (source.rows + rows - 1) / rows);
}

// As planMemory() counts them, if all groups have as much.
int64_t GridPrices::bytesOf(int table, const Shard &shard, bool norms,
                            const RelayLoad &relay) const {
  MemoryTerms terms = shardMemory(context.problem, context.table(table),
                                  context.featuresOf(table), shard, norms);
  terms.forwardBytes +=
      static_cast<int64_t>(2 * relay.forwardInside + relay.forwardAcross);
  terms.backwardBytes +=
      static_cast<int64_t>(2 * relay.backwardInside + relay.backwardAcross);
  return terms.peakBytes();
}

PartPrice GridPrices::priceOf(int table, const Grid &grid, bool last) const {
  // Parts with the same rows exchange norms: the part is on the first group,
  // those beside it on others.
  const std::vector<int> &features = context.featuresOf(table);
  int first = last ? grid.columns - 1 : 0;
  std::vector<Shard> shards;
  for (int i = 0; i < grid.columns; ++i)
    for (Shard &shard : shardsOf(table, grid, (first + i) % grid.columns, i))
      shards.push_back(std::move(shard));
  bool norms =
      context.rulesOf(table).exactRows && grid.columns * grid.innerColumns > 1;
  std::deque<ShardWork> works;
  std::vector<DeviceLoad> loads(static_cast<size_t>(grid.columns) *
                                static_cast<size_t>(groupSize));
  std::vector<OwnedRows> owned;
  std::vector<const Shard *> owners;
  for (const Shard &shard : shards) {
    int device = shard.devices.front();
    const ShardWork &work = works.emplace_back(describeShard(
        context.problem, table, features, shard, norms, context.demands()));
    addLoads(loads[static_cast<size_t>(device)], loadOf(work), 1);
    owned.push_back({table,
                     device,
                     {shard.rowBegin, shard.rowEnd},
                     work.groupInputBytes,
                     work.normBytes});
    owners.push_back(&shard);
  }
  shareInGroups(groupSize, std::move(owned), loads);
  std::vector<RelayLoad> relays(loads.size());
  TableRelay(context.problem, features, owners).add(loads, relays, 1);

  // Beside the replicas of the first group.
  auto size = static_cast<size_t>(groupSize);
  loads.resize(size);
  relays.resize(size);
  std::vector<ShardSet> sets(replicas.sets.begin(),
                             replicas.sets.begin() + groupSize);
  for (size_t i = 0; i < std::min(size, works.size()); ++i)
    sets[static_cast<size_t>(shards[i].devices.front())].shards.push_back(
        &works[i]);
  std::vector<ComputeMs> compute(size);
  context.model.computeMs(sets, compute);
  PartPrice price;
  for (size_t i = 0; i < size; ++i) {
    double norms = loads[i].insideNormBytes;
    addLoads(loads[i], replicaLoads[i], 1);
    loads[i].insideNormBytes = norms;
    loads[i].compute = compute[i];
  }
  for (size_t i = 0; i < std::min(size, shards.size()); ++i)
    price.bytes = std::max(
        price.bytes,
        bytesOf(table, shards[i], norms,
                relays[static_cast<size_t>(shards[i].devices.front())]));
  StageMs all = stagesOf(loads, relays);
  for (size_t stage = 0; stage < kGridStages; ++stage)
    price.ms[stage] = std::max(0.0, all[stage] - none[stage]);
  return price;
}
