//===- Separation.h - Devices that hold separated tables --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEPARATION_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEPARATION_H

#include "SearchContext.h"
#include "Unit.h"

#include <map>
#include <vector>

namespace neuroshard {

/// Counts, per device, the shards of tables in Constraints::separate.
class Separation {
public:
  explicit Separation(const SearchContext &context);

  void clear();
  /// Adds shards to a device (sign 1) or takes them away (-1).
  void change(int device, const ShardFacts &facts, int sign) {
    if (!shards.empty())
      count(device, facts, sign);
  }

  /// May these shards come to the device? Those of `leaving`, which are on it,
  /// do not count.
  bool admits(int device, const ShardFacts &facts,
              const ShardFacts *leaving = nullptr) const;
  /// Does the device hold a separated table of these shards already? More of
  /// it there takes no further device from the tables it is separated from.
  bool holds(int device, const ShardFacts &facts) const;

private:
  void count(int device, const ShardFacts &facts, int sign);

  const SearchContext *context;
  /// Per device: shards of each table on it that is separated from another.
  /// Empty when none is.
  std::vector<std::map<int, int>> shards;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEPARATION_H
