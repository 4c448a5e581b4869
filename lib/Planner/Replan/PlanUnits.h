//===- PlanUnits.h - Units and placement read from a plan -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_PLANUNITS_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_PLANUNITS_H

#include "Units/SearchState.h"

#include <map>
#include <vector>

namespace neuroshard {

/// Reads a plan as units: those before any cut, and those placed.
class PlanUnits {
public:
  PlanUnits(const SearchContext &context, const ShardingPlan &plan)
      : context(context) {
    for (const Shard &shard : plan.shards)
      shardsOfTable[context.tableIndex(shard.table)].push_back(&shard);
  }

  /// False when the plan is not made of these units.
  bool read(const std::vector<UnitPtr> &units);
  SearchState state() const;

  std::vector<UnitPtr> wholes;

private:
  bool readAll(const std::vector<UnitPtr> &units);
  bool readUnit(const UnitPtr &unit);
  bool isInPlace(const Unit &unit) const;
  bool readSet(const UnitPtr &unit);
  std::vector<Shard> within(const Shard &rectangle, int table) const;
  void place(std::vector<Shard> shards, int device);

  const SearchContext &context;
  std::map<int, std::vector<const Shard *>> shardsOfTable;
  std::vector<UnitPtr> placed;
  std::vector<int> devices;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_REPLAN_PLANUNITS_H
