//===- SearchState.h - Units on devices, with memory and cost ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEARCHSTATE_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEARCHSTATE_H

#include "Cost/RelayLoads.h"
#include "DeviceTotals.h"
#include "UnitOperations.h"

#include <vector>

namespace neuroshard {

/// An assignment of units to devices with memory, loads and cost, all
/// maintained incrementally.
class SearchState {
public:
  /// Places the units that have no choice. `units`: all that are to be placed;
  /// they decide how much memory joining columns takes on every device.
  SearchState(const SearchContext &context, std::vector<UnitPtr> units);

  static constexpr int kUnplaced = -1;

  const std::vector<UnitPtr> &units() const { return allUnits; }
  int deviceOf(size_t unit) const { return devices[unit]; }
  bool movable(size_t unit) const {
    return !allUnits[unit]->writtenByHand && allUnits[unit]->forcedDevice == -1;
  }
  const std::vector<size_t> &unitsOn(int device) const {
    return lists[static_cast<size_t>(device)];
  }
  const DeviceTotals &totals() const { return sums; }
  const DeviceLoad &loadOf(int device) const {
    return sums.in(kSummary).loadOf(device);
  }
  /// Bytes that joining columns takes on every device.
  int64_t permuteBytes() const { return cuts.permuteBytes(); }
  /// Bytes in use / free on a device, with everything every device holds.
  int64_t usedBytes(int device) const;
  int64_t freeBytes(int device) const;
  /// How many times the unit has room on the device, and on its host.
  double roomFor(int device, const Unit &unit) const;

  /// May the unit be added without breaking memory, a device rule or a
  /// separation?
  bool fits(int device, const Unit &unit) const;
  /// fits(), but for memory.
  bool admits(int device, const Unit &unit) const;
  /// Is every device and host within its memory?
  bool withinMemory() const;

  void place(size_t unit, int device);
  void remove(size_t unit);
  /// Replaces a unit by others, none of which is placed; the first takes its
  /// index, the others come last. Returns their indices.
  std::vector<size_t> replace(size_t unit, const std::vector<UnitPtr> &parts);
  /// Removes a unit from units(); the last one takes its index.
  void erase(size_t unit);

  /// What goes by way of relays, by table. Until this is called costs are as if
  /// all went directly, ids that shards of a group share came for each, and
  /// norms left their groups.
  void setRelays(std::vector<std::optional<TableRelay>> byTable) {
    relays = std::move(byTable);
  }
  /// The table's results go directly.
  void dropRelay(int table) {
    if (!relays.empty())
      relays[static_cast<size_t>(table)].reset();
  }

  /// Compute of a device with one more unit.
  ComputeMs computeWith(int device, const Unit &unit) const;
  /// Objective; with snapshots the mean over them, worked out from scratch.
  double costMs() const;
  /// Objective of the summary / the same with one more unit on a device.
  CostBreakdown breakdown() const;
  double costWith(int device, const Unit &unit) const;

  /// The plan of all units: shards named and sorted by table and range.
  ShardingPlan plan() const;

  const SearchContext &context() const { return *owner; }

private:
  /// place() but for the device's compute.
  void hold(size_t unit, int device);
  void updateCompute(int device);
  void removeFrom(int device, size_t unit);
  ComputeMs computeOf(int device, const Unit *added) const;
  double costInMs(size_t period) const;
  /// A unit that is not placed, and where it would be.
  struct Added {
    int device;
    const Unit *unit;
  };
  CostBreakdown compose(std::span<const DeviceLoad> loads, int period,
                        std::optional<Added> added = {}) const;
  std::vector<OwnedRows> ownedRows(int period,
                                   std::optional<Added> added) const;

  const SearchContext *owner;
  std::vector<UnitPtr> allUnits;
  /// Device of each unit.
  std::vector<int> devices;
  /// Units of each device.
  std::vector<std::vector<size_t>> lists;
  DeviceTotals sums;
  /// Of all units, placed or not.
  ColumnCuts cuts;
  std::vector<std::optional<TableRelay>> relays;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEARCHSTATE_H
