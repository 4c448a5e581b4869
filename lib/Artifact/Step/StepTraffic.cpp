//===- StepTraffic.cpp - Bytes that travel in one step --------------------===//

#include "neuroshard/Artifact/StepTraffic.h"

#include "CopySums.h"
#include "ExchangeCounts.h"
#include "NormCounts.h"
#include "neuroshard/Artifact/CopyAverages.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"

#include <algorithm>

namespace neuroshard {
namespace {

PairBytes zeros(size_t devices) {
  return PairBytes(devices, std::vector<int64_t>(devices, 0));
}

/// Bytes by sender and receiver.
class PairTraffic {
public:
  static constexpr bool kCountsIds = true;
  explicit PairTraffic(size_t devices) {
    for (PairBytes *bytes :
         {&traffic.ids, &traffic.relayedIds, &traffic.results,
          &traffic.relayedResults, &traffic.gradients,
          &traffic.relayedGradients, &traffic.copies})
      *bytes = zeros(devices);
  }

  void add(PairBytes ExchangeTraffic::*kind, size_t from, size_t to,
           int64_t bytes) {
    (traffic.*kind)[from][to] += bytes;
  }
  void add(PairBytes ExchangeTraffic::*kind, const DeviceRange &from, size_t to,
           int64_t bytes) {
    for (size_t device = from.begin; device < from.end; ++device)
      add(kind, device, to, bytes);
  }
  void add(PairBytes ExchangeTraffic::*kind, size_t from, const DeviceRange &to,
           int64_t bytes) {
    for (size_t device = to.begin; device < to.end; ++device)
      add(kind, from, device, bytes);
  }

  ExchangeTraffic traffic;
};

/// What averages of copies take in a mean step.
template <typename Add>
void countAverages(const ExchangePlan &plan, const Add &add) {
  for (int32_t number : plan.driftingCopies()) {
    const ShardSpec &shard = plan.shards[static_cast<size_t>(number)];
    countAverage(plan, shard, [&](size_t from, size_t to, int64_t bytes) {
      add(from, to, bytes / shard.syncEvery);
    });
  }
}

/// Bytes between each device and the others.
class SumsOfDevices {
public:
  explicit SumsOfDevices(size_t devices) : sums(devices), steps(devices + 1) {}

  void add(size_t a, size_t b, int64_t bytes) {
    if (a == b)
      return;
    sums[a] += bytes;
    sums[b] += bytes;
  }
  /// Between a device and each of others.
  void add(size_t device, const DeviceRange &others, int64_t bytes) {
    bool isOne = others.contains(device);
    sums[device] += bytes * static_cast<int64_t>(others.size());
    sums[device] -= isOne ? 2 * bytes : 0;
    steps[others.begin] += bytes;
    steps[others.end] -= bytes;
  }

  std::vector<int64_t> total() const {
    std::vector<int64_t> total = sums;
    int64_t ofAll = 0;
    for (size_t device = 0; device < total.size(); ++device)
      total[device] += ofAll += steps[device];
    return total;
  }

private:
  std::vector<int64_t> sums;
  /// By how much more each device has than the one before it, beside `sums`.
  std::vector<int64_t> steps;
};

/// The sums of PairTraffic for each device, in time and memory for each device,
/// not for each pair.
class DeviceSums {
public:
  static constexpr bool kCountsIds = false;
  explicit DeviceSums(size_t devices) : forward(devices), backward(devices) {}

  void add(PairBytes ExchangeTraffic::*kind, size_t from, size_t to,
           int64_t bytes) {
    sumsOf(kind).add(from, to, bytes);
  }
  void add(PairBytes ExchangeTraffic::*kind, const DeviceRange &from, size_t to,
           int64_t bytes) {
    add(kind, to, from, bytes);
  }
  void add(PairBytes ExchangeTraffic::*kind, size_t from, const DeviceRange &to,
           int64_t bytes) {
    sumsOf(kind).add(from, to, bytes);
  }

  SumsOfDevices forward, backward;

private:
  SumsOfDevices &sumsOf(PairBytes ExchangeTraffic::*kind) {
    bool isForward = kind == &ExchangeTraffic::results ||
                     kind == &ExchangeTraffic::relayedResults;
    return isForward ? forward : backward;
  }
};

/// Counts what one exchange sends, by how it is sent, and adds it to `Sums`.
template <typename Sums> class ExchangeBytes : private ExchangeCounts {
public:
  ExchangeBytes(const ExchangePlan &plan, size_t exchange,
                const ExchangeLayout &layout, const ExchangeLoad &load,
                Sums &sums)
      : ExchangeCounts(plan, exchange, load), plan(plan), exchange(exchange),
        layout(layout), wire(plan.wireType), sums(sums) {}

  void add() {
    for (size_t owner = 0; owner < count; ++owner)
      addDirect(owner);
    if constexpr (Sums::kCountsIds)
      addIds();
    if (!layout.relays.empty())
      addRelayed();
    if (layout.hasReplicated && count > 1)
      addReplicated();
  }

private:
  /// The values for the ids that ranks have for an owner.
  void addDirect(size_t owner) {
    const StreamSet &set = layout.owners[owner];
    for (const DeviceRange &ranks : runs)
      addBothWays(ranks, owner, set);
  }

  void addBothWays(const DeviceRange &ranks, size_t owner,
                   const StreamSet &set) {
    size_t rank = ranks.begin;
    sums.add(&ExchangeTraffic::results, owner, ranks,
             directBytes(set, rank, wire.results));
    sums.add(&ExchangeTraffic::gradients, ranks, owner,
             directBytes(set, rank, wire.gradients));
  }

  void addIds() {
    if (!layout.groupIds.empty())
      return addGroupIds();
    for (size_t owner = 0; owner < count; ++owner)
      for (const DeviceRange &ranks : runs)
        sums.add(&ExchangeTraffic::ids, ranks, owner,
                 payloadBytes(layout.owners[owner], ranks.begin));
  }

  /// Ids to the relay in each group, which hands them out to the owners.
  void addGroupIds() {
    DeviceGroups groups(plan);
    for (size_t rank = 0; rank < count; ++rank) {
      GroupPlace place = groups.placeOf(static_cast<int64_t>(rank));
      for (int32_t relay : groups.devicesWithIndex(place.index)) {
        auto group = static_cast<size_t>(groups.placeOf(relay).group);
        auto r = static_cast<size_t>(relay);
        sums.add(&ExchangeTraffic::ids, rank, r,
                 payloadBytes(layout.groupIds[group], rank));
        for (int32_t owner : groups.group(groups.placeOf(relay).group))
          sums.add(
              &ExchangeTraffic::relayedIds, r, static_cast<size_t>(owner),
              payloadBytes(layout.owners[static_cast<size_t>(owner)], rank));
      }
    }
  }

  /// What all ranks gather, and sums by row to those that add them up, and
  /// back.
  void addReplicated() {
    ReplicaUpdate update = replicaUpdate(plan, exchange, layout);
    const StreamSet &gathered = update.gathered.set;
    for (size_t rank = 0; !gathered.entries.empty() && rank < count; ++rank)
      sums.add(&ExchangeTraffic::copies, rank, DeviceRange{0, count},
               payloadBytes(gathered, rank) +
                   directBytes(gathered, rank, wire.gradients));
    if (!update.tables.empty())
      addRowSums(update.numSums);
  }

  void addRowSums(int64_t numSums) {
    DeviceGroups groups(plan);
    int64_t bytes = valueBytes(rowSumFormat(wire.gradients));
    for (size_t rank = 0; rank < count; ++rank)
      for (const ReduceLevel &level :
           reduceLevels(groups, static_cast<int32_t>(rank), numSums))
        for (size_t i = 0; i < level.peers.size(); ++i) {
          // Its sums of the peer's section, and the totals of its own.
          int64_t values = level.section(i).size() + level.ownSection().size();
          sums.add(&ExchangeTraffic::copies, rank,
                   static_cast<size_t>(level.peers[i]), values * bytes);
        }
  }

  void addRelayed() {
    DeviceGroups groups(plan);
    HierarchicalSizes results(layout, groups, load.batches, wire.results);
    HierarchicalSizes gradients(layout, groups, load.batches, wire.gradients);
    int64_t resultBytes = valueBytes(wire.results);
    int64_t gradientBytes = valueBytes(wire.gradients);
    for (size_t device = 0; device < count; ++device) {
      auto rank = static_cast<int64_t>(device);
      GroupPlace place = groups.placeOf(rank);
      for (int32_t relay : groups.group(place.group)) {
        auto r = static_cast<size_t>(relay);
        sums.add(&ExchangeTraffic::results, device, r,
                 results.ownerToRelay(rank, relay) * resultBytes);
        sums.add(&ExchangeTraffic::relayedGradients, r, device,
                 gradients.ownerToRelay(rank, relay) * gradientBytes);
      }
      for (int32_t relay : groups.devicesWithIndex(place.index)) {
        auto r = static_cast<size_t>(relay);
        sums.add(&ExchangeTraffic::relayedResults, r, device,
                 results.relayToSamples(relay, rank) * resultBytes);
        sums.add(&ExchangeTraffic::gradients, device, r,
                 gradients.relayToSamples(relay, rank) * gradientBytes);
      }
    }
  }

  const ExchangePlan &plan;
  size_t exchange;
  const ExchangeLayout &layout;
  WireType wire;
  Sums &sums;
};

template <typename Sums>
void countExchange(const ExchangePlan &plan,
                   const std::vector<ExchangeLayout> &layouts,
                   const StepLoad &load, size_t exchange, Sums &sums) {
  ExchangeBytes<Sums>(plan, exchange, layouts[exchange],
                      load.exchanges[exchange], sums)
      .add();
}

} // namespace

StepTraffic stepTraffic(const ExchangePlan &plan,
                        const std::vector<ExchangeLayout> &layouts,
                        const StepLoad &load, Engine engine) {
  auto devices = static_cast<size_t>(plan.numDevices);
  StepTraffic traffic;
  for (size_t x = 0; x < layouts.size(); ++x) {
    PairTraffic pairs(devices);
    countExchange(plan, layouts, load, x, pairs);
    traffic.exchanges.push_back(std::move(pairs.traffic));
  }
  traffic.norms = zeros(devices);
  countNorms(plan, layouts, load, engine,
             [&](size_t from, size_t to, int64_t bytes) {
               traffic.norms[from][to] += bytes;
             });
  traffic.copySums = zeros(devices);
  countCopySums(plan, load, [&](size_t from, size_t to, int64_t bytes) {
    traffic.copySums[from][to] += bytes;
  });
  traffic.averages = zeros(devices);
  countAverages(plan, [&](size_t from, size_t to, int64_t bytes) {
    traffic.averages[from][to] += bytes;
  });
  return traffic;
}

DeviceTraffic deviceTraffic(const ExchangePlan &plan,
                            const std::vector<ExchangeLayout> &layouts,
                            const StepLoad &load, Engine engine) {
  auto devices = static_cast<size_t>(plan.numDevices);
  DeviceSums sums(devices);
  for (size_t x = 0; x < layouts.size(); ++x)
    countExchange(plan, layouts, load, x, sums);
  countNorms(plan, layouts, load, engine,
             [&](size_t from, size_t to, int64_t bytes) {
               sums.backward.add(from, to, bytes);
             });
  auto addBackward = [&](size_t from, size_t to, int64_t bytes) {
    sums.backward.add(from, to, bytes);
  };
  countCopySums(plan, load, addBackward);
  countAverages(plan, addBackward);
  return {sums.forward.total(), sums.backward.total()};
}

} // namespace neuroshard
