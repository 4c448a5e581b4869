//===- SearchState.h - Units on devices, with memory and cost ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEARCHSTATE_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEARCHSTATE_H

#include "UnitOperations.h"

#include <map>
#include <utility>
#include <vector>

namespace neuroshard {

/// What happens to one device in a trial: units that come and units that go.
struct DeviceChange {
  int device = 0;
  std::vector<const Unit *> added;
  std::vector<const Unit *> removed;
};

/// What decides whether one state is better than another.
struct Trial {
  double costMs = 0;
  /// The cost with each maximum over the devices replaced by a p-norm, which
  /// also falls when one of several equally slow devices gets faster.
  double smoothMs = 0;
};

/// An assignment of units to devices with memory, loads and cost, all
/// maintained incrementally.
class SearchState {
public:
  /// Places the units that have no choice; the others wait. `units` gives the
  /// set that will be placed in the end, which decides how much memory joining
  /// columns takes everywhere.
  SearchState(const SearchContext &context, std::vector<UnitPtr> units);

  static constexpr int kUnplaced = -1;

  const std::vector<UnitPtr> &units() const { return allUnits; }
  int deviceOf(size_t unit) const { return devices[unit]; }
  bool movable(size_t unit) const {
    return !allUnits[unit]->writtenByHand && allUnits[unit]->forcedDevice == -1;
  }
  const std::vector<size_t> &unitsOn(int device) const {
    return slot(device).units;
  }
  const DeviceLoad &loadOf(int device) const {
    return loads[static_cast<size_t>(device)];
  }
  const MemoryTerms &memoryOf(int device) const { return slot(device).memory; }
  /// Sum of the embeddings; empty without a SumEmbedding.
  std::span<const double> embeddingOf(int device) const {
    return slot(device).embedding;
  }
  /// Bytes in use / free on a device, with everything every device holds.
  int64_t usedBytes(int device) const;
  int64_t freeBytes(int device) const;

  /// May these units be added (and those removed) without breaking memory, a
  /// device rule or a separation?
  bool fits(const DeviceChange &change) const;
  bool fits(int device, const Unit &unit) const;
  /// fits(), were there room.
  bool admits(int device, const Unit &unit) const;
  /// Does the device hold a table of the unit that is to be kept apart from
  /// others? More of it there takes no further device from those.
  bool holdsSeparated(int device, const Unit &unit) const;
  /// Nothing is above its memory.
  bool withinMemory() const;

  void place(size_t unit, int device);
  void remove(size_t unit);
  /// Replaces a unit by others, none of which is placed; the first takes its
  /// index, the others come last. Returns their indices.
  std::vector<size_t> replace(size_t unit, const std::vector<UnitPtr> &parts);
  /// Takes a unit out for good; the last one takes its index.
  void erase(size_t unit);

  /// Compute of a device after a change.
  ComputeMs computeAfter(const DeviceChange &change) const;
  /// Objective now; with snapshots the mean over them, from scratch.
  double costMs() const;
  /// Objective now / after some changes on different devices, of the summary.
  Trial trial() const;
  Trial trialAfter(const std::vector<DeviceChange> &changes);
  CostBreakdown breakdown() const;

  /// Shards of everything placed, in the order of tables and ranges, named.
  ShardingPlan plan() const;

  const SearchContext &context() const { return *owner; }

private:
  struct Slot {
    MemoryTerms memory;
    std::vector<double> embedding;
    int shardCount = 0;
    std::vector<size_t> units;
  };

  Slot &slot(int device) { return slots[static_cast<size_t>(device)]; }
  const Slot &slot(int device) const {
    return slots[static_cast<size_t>(device)];
  }
  void addTo(int device, size_t unit);
  void removeFrom(int device, size_t unit);
  void apply(int device, const Unit &unit, int sign);
  void countColumns(const Unit &unit, int sign);
  bool keepsApart(int device, const Unit &unit,
                  const std::vector<const Unit *> &leaving) const;
  double costInMs(size_t period) const;
  DeviceLoad loadAfter(const DeviceChange &change) const;
  MemoryTerms memoryAfter(const DeviceChange &change) const;

  const SearchContext *owner;
  std::vector<UnitPtr> allUnits;
  std::vector<int> devices;
  std::vector<Slot> slots;
  std::vector<DeviceLoad> loads;
  std::vector<int64_t> hostBytes;
  std::vector<int> columnUnits;
  int64_t permuteBytes = 0;
  /// (device, separate set) -> table -> units.
  std::map<std::pair<int, int>, std::map<int, int>> separateUse;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEARCHSTATE_H
