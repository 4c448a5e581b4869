//===- Replicas.cpp - Small hot tables replicated to save time ------------===//

#include "Replicas.h"

#include "Units/UnitStore.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

/// A replica must lower the cost of the average device by this share.
constexpr double kLeastReplicaGain = 2e-4;
/// Replicas take at most this share of a device's free memory.
constexpr double kFreeShare = 0.25;

/// The contents of each device if all units were spread evenly.
struct Average {
  std::vector<double> sum;
  double shards = 0;
  DeviceLoad load;

  /// Adds a share of a unit.
  void add(const std::vector<double> &embedding, size_t count,
           const DeviceLoad &piece, double share) {
    for (size_t k = 0; k < sum.size(); ++k)
      sum[k] += share * embedding[k];
    shards += share * static_cast<double>(count);
    addLoads(load, piece, share);
  }
};

class ReplicaChooser {
public:
  ReplicaChooser(const SearchContext &context,
                 const std::vector<UnitPtr> &units)
      : context(context), units(units), replicas(units.size()) {}

  std::vector<UnitPtr> run();
  std::vector<UnitPtr> all() const;

private:
  bool mayReplicate(const Unit &unit) const;
  UnitPtr replicaOf(const Unit &unit) const;
  double costMs(const Average &average) const;
  Average replaced(const Average &average, size_t unit) const;
  int64_t freeBytes() const;

  const SearchContext &context;
  const std::vector<UnitPtr> &units;
  std::vector<UnitPtr> replicas;
};

bool ReplicaChooser::mayReplicate(const Unit &unit) const {
  return isWholeTable(context, unit) && !unit.restricted &&
         context.rulesOf(unit.tables.front()).allows(ShardingKind::Replicated);
}

UnitPtr ReplicaChooser::replicaOf(const Unit &unit) const {
  Shard shard = unit.shards.front();
  for (int device = 0; device < context.deviceCount; ++device)
    shard.devices.push_back(device);
  return makeUnit(context, {shard}, Unit::kEverywhere);
}

double ReplicaChooser::costMs(const Average &average) const {
  DeviceLoad load = average.load;
  load.compute = context.model.sumEmbedding()->head(
      average.sum, std::max(1, static_cast<int>(std::lround(average.shards))),
      *context.usedClasses.front());
  std::vector<DeviceLoad> loads(static_cast<size_t>(context.deviceCount), load);
  return composeCost(context.problem.topology, loads, context.model,
                     context.options.objective)
      .costMs;
}

Average ReplicaChooser::replaced(const Average &average, size_t unit) const {
  Average result = average;
  result.add(units[unit]->embedding, 1, units[unit]->load,
             -1.0 / context.deviceCount);
  result.add(replicas[unit]->embedding, 1, replicas[unit]->load, 1);
  return result;
}

/// Free memory of the smallest device if all units were spread evenly.
int64_t ReplicaChooser::freeBytes() const {
  double tables = 0;
  Footprint all;
  for (const UnitPtr &unit : units) {
    tables += static_cast<double>(unit->peakBytes()) / context.deviceCount;
    all += unit->footprint;
  }
  tables += static_cast<double>(context.sharedBytesOf(all).device);
  double least = 1e300;
  for (int device = 0; device < context.deviceCount; ++device)
    least = std::min(least,
                     static_cast<double>(context.memoryOf(device) -
                                         context.baseOf(device).peakBytes()) -
                         tables);
  return static_cast<int64_t>(std::max(0.0, kFreeShare * least));
}

std::vector<UnitPtr> ReplicaChooser::all() const {
  std::vector<UnitPtr> result = units;
  for (UnitPtr &unit : result)
    if (mayReplicate(*unit))
      unit = replicaOf(*unit);
  return result;
}

std::vector<UnitPtr> ReplicaChooser::run() {
  Average average;
  average.sum.resize(static_cast<size_t>(context.model.sumEmbedding()->size()));
  for (const UnitPtr &unit : units)
    average.add(unit->embedding, unit->shards.size(), unit->load,
                unit->forcedDevice == Unit::kEverywhere
                    ? 1
                    : 1.0 / context.deviceCount);
  int64_t room = freeBytes();
  double cost = costMs(average);
  std::vector<std::pair<double, size_t>> gains;
  for (size_t i = 0; i < units.size(); ++i) {
    // A replica takes at least its weights; the rest is checked below.
    if (!mayReplicate(*units[i]) || units[i]->weightBytes() > room)
      continue;
    replicas[i] = replicaOf(*units[i]);
    double gain = cost - costMs(replaced(average, i));
    if (gain > kLeastReplicaGain * cost)
      gains.emplace_back(-gain, i);
  }
  std::sort(gains.begin(), gains.end());
  std::vector<UnitPtr> result = units;
  for (auto [gain, i] : gains) {
    Average after = replaced(average, i);
    double costAfter = costMs(after);
    if (replicas[i]->peakBytes() > room ||
        cost - costAfter < kLeastReplicaGain * cost)
      continue;
    room -= replicas[i]->peakBytes();
    average = after;
    cost = costAfter;
    result[i] = replicas[i];
  }
  return result;
}

} // namespace

bool neuroshard::pricesReplicas(const SearchContext &context) {
  return context.model.separatesBackward() && context.deviceCount >= 2;
}

std::vector<UnitPtr>
neuroshard::allReplicated(const SearchContext &context,
                          const std::vector<UnitPtr> &units) {
  if (!pricesReplicas(context))
    return units;
  return ReplicaChooser(context, units).all();
}

std::vector<UnitPtr>
neuroshard::withReplicas(const SearchContext &context,
                         const std::vector<UnitPtr> &units) {
  if (!pricesReplicas(context) || !context.model.sumEmbedding())
    return units;
  return ReplicaChooser(context, units).run();
}
