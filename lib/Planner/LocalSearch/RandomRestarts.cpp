//===- RandomRestarts.cpp - Random restarts until a plan fits -------------===//
///
/// \file
/// The last resort for problems with few feasible plans.
//===----------------------------------------------------------------------===//

#include "RandomRestarts.h"

#include "Forms/TableForms.h"
#include "RandomPlacer.h"

#include <algorithm>
#include <set>

using namespace neuroshard;

namespace {

/// Tries x units x devices, and bounds on the number of tries.
constexpr double kWork = 3e6;
constexpr double kMinTries = 8;
constexpr double kMaxTries = 3000;
constexpr double kMaxFewTries = 100;

std::vector<RandomEntry> entriesOf(const SearchContext &context,
                                   const std::vector<UnitPtr> &initial,
                                   std::vector<UnitPtr> &units) {
  std::vector<RandomEntry> entries;
  for (FormEntry &form : formEntries(context, initial)) {
    std::set<int> tables;
    bool fixed = false;
    for (const UnitPtr &unit : form.given.units)
      for (int table : unit->tables) {
        tables.insert(table);
        fixed = fixed || context.rulesOf(table).fixed;
      }
    bool set = context.rulesOf(*tables.begin()).coLocateLeader >= 0;
    RandomEntry entry{.tables = {tables.begin(), tables.end()},
                      .given = fixed && !set,
                      .fixedOn = {},
                      .first = units.size()};
    for (const UnitPtr &unit : form.given.units) {
      if (!fixed || (set && !context.rulesOf(unit->tables.front()).fixed))
        continue;
      bool free = set && !unit->writtenByHand;
      units.push_back(free ? makeUnit(context, unit->shards) : unit);
      if (set && unit->writtenByHand)
        entry.fixedOn.insert(entry.fixedOn.end(),
                             unit->shards.front().devices.begin(),
                             unit->shards.front().devices.end());
    }
    for (int table : tables)
      if (!context.rulesOf(table).fixed && !entry.given)
        units.push_back(wholeTable(context, table));
    entry.count = units.size() - entry.first;
    entries.push_back(std::move(entry));
  }
  return entries;
}

} // namespace

void neuroshard::restartRandomly(const SearchContext &context,
                                 const std::vector<UnitPtr> &initial,
                                 SearchOutcome &outcome, Restarts restarts) {
  std::vector<UnitPtr> units;
  std::vector<RandomEntry> entries = entriesOf(context, initial, units);
  double size = static_cast<double>(units.size()) * context.deviceCount;
  double most = restarts == Restarts::Few ? kMaxFewTries : kMaxTries;
  int tries = static_cast<int>(std::clamp(kWork / size, kMinTries, most));
  for (int i = 0; i < tries && !context.deadlinePassed(); ++i) {
    RandomPlacer placer(context, units, entries,
                        context.options.seed * 100003 +
                            static_cast<uint64_t>(i));
    ++outcome.evaluations;
    if (auto state = placer.run()) {
      outcome.tried.push_back("random forms and places, try " +
                              std::to_string(i + 1) + ": " +
                              formatMs(state->costMs()));
      outcome.stopReason = "memory and rules leave so little that the first "
                           "plan found was kept";
      outcome.state = std::move(state);
      return;
    }
  }
}
