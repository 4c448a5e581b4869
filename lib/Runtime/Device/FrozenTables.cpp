//===- FrozenTables.cpp - Tables without gradients ------------------------===//

#include "FrozenTables.h"

#include "neuroshard/Support/Random.h"

#include <utility>

namespace neuroshard::runtime {

FrozenTables::FrozenTables(const Manifest &manifest, const DeviceGroups &groups,
                           std::vector<bool> frozen)
    : ofTable(std::move(frozen)) {
  for (size_t i = 0; i < manifest.layouts.size(); ++i)
    layouts.push_back(withoutGradientsOf(manifest.exchanges[i], groups, ofTable,
                                         manifest.layouts[i]));
}

int64_t FrozenTables::hash() const {
  uint64_t state = 1;
  for (size_t table = 0; table < ofTable.size(); ++table)
    if (ofTable[table])
      state = SplitMix64(state ^ table).next();
  return static_cast<int64_t>(state | 1);
}

std::string namesOf(const FrozenTablesPtr &frozen, const Manifest &manifest) {
  std::string names;
  for (size_t table = 0; frozen && table < frozen->tables().size(); ++table)
    if (frozen->tables()[table])
      names += (names.empty() ? "" : ", ") + manifest.tables[table].name;
  return names.empty() ? "none" : names;
}

} // namespace neuroshard::runtime
