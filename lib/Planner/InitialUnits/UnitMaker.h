//===- UnitMaker.h - Makes the units of a problem, by table -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_INITIALUNITS_UNITMAKER_H
#define NEUROSHARD_LIB_PLANNER_INITIALUNITS_UNITMAKER_H

#include "Units/UnitOperations.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// Makes the units of initialUnits().
class UnitMaker {
public:
  explicit UnitMaker(const SearchContext &context) : context(context) {}

  tl::expected<std::vector<UnitPtr>, PlanningError> run();

private:
  void addFixedShards();
  void addRest(int table, const std::vector<const Shard *> &fixed);
  void addRectangle(const Shard &rectangle);
  void addTable(int table);
  void addCoLocated();
  void addCoLocatedParts(const std::vector<int> &tables);
  std::optional<std::vector<std::vector<Shard>>>
  partsOf(int table, const std::vector<int> &group) const;
  void addAroundFixed(const std::vector<int> &tables);
  bool addOnEach(int table, const std::vector<int> &devices);
  bool addRestOnEach(int table, const std::vector<int> &devices);
  bool anyFixed(const std::vector<int> &tables) const;
  bool allMayStayWhole(const std::vector<int> &tables) const;
  bool addInAllowedForm(int table);
  bool addReplicas(int table);
  const std::vector<int> &
  roomiestGroup(int table, const std::vector<std::vector<int>> &groups) const;
  void fail(std::string message, std::string advice) {
    if (!failure)
      failure = PlanningError{
          Limit::Constraint, std::move(message), {}, std::move(advice)};
  }

  Shard whole(int table) const {
    const Table &source = context.table(table);
    return {.name = "",
            .table = source.name,
            .rowEnd = source.rows,
            .colEnd = source.dim,
            .devices = {}};
  }

  const SearchContext &context;
  std::vector<UnitPtr> units;
  std::map<int, std::vector<const Shard *>> fixedOfTable;
  std::optional<PlanningError> failure;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_INITIALUNITS_UNITMAKER_H
