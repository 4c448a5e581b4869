//===- StepTraffic.cpp - Bytes that travel in one step --------------------===//

#include "neuroshard/Artifact/StepTraffic.h"

#include "ExchangeCounts.h"
#include "NormCounts.h"
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
  explicit PairTraffic(size_t devices) {
    for (PairBytes *bytes :
         {&traffic.ids, &traffic.results, &traffic.relayedResults,
          &traffic.gradients, &traffic.relayedGradients, &traffic.copies})
      *bytes = zeros(devices);
  }

  void add(PairBytes ExchangeTraffic::*kind, size_t from, size_t to,
           int64_t bytes) {
    (traffic.*kind)[from][to] += bytes;
  }

  ExchangeTraffic traffic;
};

/// Bytes between each device and the others, without a number for each pair.
class DeviceSums {
public:
  explicit DeviceSums(DeviceTraffic &traffic) : traffic(traffic) {}

  void add(PairBytes ExchangeTraffic::*kind, size_t from, size_t to,
           int64_t bytes) {
    if (from == to || kind == &ExchangeTraffic::ids)
      return;
    bool isForward = kind == &ExchangeTraffic::results ||
                     kind == &ExchangeTraffic::relayedResults;
    std::vector<int64_t> &sums = isForward ? traffic.forward : traffic.backward;
    sums[from] += bytes;
    sums[to] += bytes;
  }

private:
  DeviceTraffic &traffic;
};

/// Counts what one exchange sends, by how it is sent, and adds it to `Sums`.
template <typename Sums> class ExchangeBytes : private ExchangeCounts {
public:
  ExchangeBytes(const ExchangePlan &plan, const ExchangeSpec &spec,
                const ExchangeLayout &layout, const ExchangeLoad &load,
                Sums &sums)
      : ExchangeCounts(spec, load), plan(plan), layout(layout),
        wire(elementBytes(plan.wireType)), sums(sums) {}

  void onCpus() {
    for (size_t owner = 0; owner < count; ++owner)
      addDirect(owner);
    if (!layout.relays.empty())
      addRelayed();
    if (!layout.hasReplicated || count == 1)
      return;
    for (size_t rank = 0; rank < count; ++rank) {
      const StreamSet &set = layout.locals[rank];
      addToAll(rank, payloadBytes(set, rank) + blockOf(set, rank).size * wire);
    }
  }

  void onGpus() {
    int64_t most = 0; // all-gather takes as many bytes of each
    for (size_t owner = 0; owner < count; ++owner) {
      const StreamSet &set = layout.owners[owner];
      int64_t ids = 0, values = 0;
      for (size_t rank = 0; rank < count; ++rank) {
        if (!likeBefore[rank]) {
          ids = unpackedIdBytes(set, rank) +
                unpackedIdBytes(layout.locals[owner], rank);
          values = paddedValues(set, rank) * wire;
        }
        addBothWays(rank, owner, ids, values);
      }
      most = std::max(most, paddedValues(layout.locals[owner], owner) * wire);
    }
    if (layout.hasReplicated && count > 1)
      for (size_t rank = 0; rank < count; ++rank)
        addToAll(rank, most);
  }

private:
  /// Ids of the ranks' samples for an owner, and the values for those ids.
  void addDirect(size_t owner) {
    const StreamSet &set = layout.owners[owner];
    int64_t ids = 0, values = 0;
    for (size_t rank = 0; rank < count; ++rank) {
      if (!likeBefore[rank]) {
        ids = payloadBytes(set, rank);
        values = blockOf(set, rank).directSize * wire;
      }
      addBothWays(rank, owner, ids, values);
    }
  }

  void addBothWays(size_t rank, size_t owner, int64_t ids, int64_t values) {
    sums.add(&ExchangeTraffic::ids, rank, owner, ids);
    sums.add(&ExchangeTraffic::results, owner, rank, values);
    sums.add(&ExchangeTraffic::gradients, rank, owner, values);
  }

  void addToAll(size_t rank, int64_t bytes) {
    for (size_t to = 0; to < count; ++to)
      sums.add(&ExchangeTraffic::copies, rank, to, bytes);
  }

  void addRelayed() {
    DeviceGroups groups(plan);
    HierarchicalSizes sizes(layout, groups, load.batches);
    auto devices = static_cast<int64_t>(count);
    for (int64_t device = 0; device < devices; ++device)
      for (int64_t relay = 0; relay < devices; ++relay) {
        auto d = static_cast<size_t>(device), r = static_cast<size_t>(relay);
        int64_t inGroup = sizes.ownerToRelay(device, relay) * wire;
        sums.add(&ExchangeTraffic::results, d, r, inGroup);
        sums.add(&ExchangeTraffic::relayedGradients, r, d, inGroup);
        int64_t across = sizes.relayToSamples(relay, device) * wire;
        sums.add(&ExchangeTraffic::relayedResults, r, d, across);
        sums.add(&ExchangeTraffic::gradients, d, r, across);
      }
  }

  const ExchangePlan &plan;
  const ExchangeLayout &layout;
  int64_t wire;
  Sums &sums;
};

template <typename Sums>
void countExchange(const ExchangePlan &plan,
                   const std::vector<ExchangeLayout> &layouts,
                   const StepLoad &load, Engine engine, size_t exchange,
                   Sums &sums) {
  ExchangeBytes<Sums> bytes(plan, plan.exchanges[exchange], layouts[exchange],
                            load.exchanges[exchange], sums);
  engine == Engine::Gpu ? bytes.onGpus() : bytes.onCpus();
}

} // namespace

StepTraffic stepTraffic(const ExchangePlan &plan,
                        const std::vector<ExchangeLayout> &layouts,
                        const StepLoad &load, Engine engine) {
  auto devices = static_cast<size_t>(plan.numDevices);
  StepTraffic traffic;
  for (size_t x = 0; x < layouts.size(); ++x) {
    PairTraffic pairs(devices);
    countExchange(plan, layouts, load, engine, x, pairs);
    traffic.exchanges.push_back(std::move(pairs.traffic));
  }
  traffic.norms = zeros(devices);
  countNorms(plan, layouts, load, engine,
             [&](size_t from, size_t to, int64_t bytes) {
               traffic.norms[from][to] += bytes;
             });
  return traffic;
}

DeviceTraffic deviceTraffic(const ExchangePlan &plan,
                            const std::vector<ExchangeLayout> &layouts,
                            const StepLoad &load, Engine engine) {
  auto devices = static_cast<size_t>(plan.numDevices);
  DeviceTraffic traffic{std::vector<int64_t>(devices),
                        std::vector<int64_t>(devices)};
  DeviceSums sums(traffic);
  for (size_t x = 0; x < layouts.size(); ++x)
    countExchange(plan, layouts, load, engine, x, sums);
  countNorms(plan, layouts, load, engine,
             [&](size_t from, size_t to, int64_t bytes) {
               if (from == to)
                 return;
               traffic.backward[from] += bytes;
               traffic.backward[to] += bytes;
             });
  return traffic;
}

} // namespace neuroshard
