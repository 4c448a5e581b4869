//===- BoardRegions.cpp - Units from which a placement was cut ------------===//

#include "Board.h"
#include "Forms/TableForms.h"

#include <algorithm>
#include <map>
#include <set>

using namespace neuroshard;

bool neuroshard::contains(const Shard &outer, const Shard &inner) {
  return outer.rowBegin <= inner.rowBegin && inner.rowEnd <= outer.rowEnd &&
         outer.colBegin <= inner.colBegin && inner.colEnd <= outer.colEnd;
}

std::vector<UnitPtr> neuroshard::regionsFor(const SearchContext &context,
                                            const std::vector<UnitPtr> &wholes,
                                            const SearchState &placed) {
  std::map<int, std::vector<const Unit *>> wholesOfTable;
  for (const UnitPtr &whole : wholes)
    if (whole->forcedDevice == -1)
      wholesOfTable[whole->tables.front()].push_back(whole.get());
  std::set<int> cutAnew;
  for (const UnitPtr &unit : placed.units()) {
    const std::vector<const Unit *> &of = wholesOfTable[unit->tables.front()];
    if (unit->forcedDevice == -1 &&
        std::none_of(of.begin(), of.end(), [&](const Unit *whole) {
          return contains(whole->shards.front(), unit->shards.front());
        }))
      cutAnew.insert(unit->tables.front());
  }
  std::vector<UnitPtr> regions = wholes;
  std::erase_if(regions, [&](const UnitPtr &whole) {
    return cutAnew.contains(whole->tables.front());
  });
  for (int table : cutAnew)
    regions.push_back(wholeTable(context, table));
  return regions;
}
