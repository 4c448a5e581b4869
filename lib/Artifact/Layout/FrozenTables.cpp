//===- FrozenTables.cpp - Layout of gradients beside frozen tables --------===//

#include "neuroshard/Artifact/ExchangeLayout.h"

namespace neuroshard {

ExchangeLayout withoutGradientsOf(const ExchangeSpec &spec,
                                  const DeviceGroups &groups,
                                  const std::vector<bool> &frozen,
                                  ExchangeLayout layout) {
  auto hasGradients = [&](size_t lookup) {
    const ExchangeLookup &one = spec.lookups[lookup];
    return one.weighted || !frozen[static_cast<size_t>(one.table)];
  };
  layout.hasRemote = layout.hasReplicated = false;
  for (size_t k = 0; k < layout.results.size(); ++k) {
    ResultLayout &result = layout.results[k];
    result.relayed.clear();
    if (!hasGradients(k))
      result = {};
    layout.hasRemote |= !result.parts.empty();
    layout.hasReplicated |= result.replicated;
  }
  bool anyRelayed = false;
  for (auto *sets : {&layout.owners, &layout.locals})
    for (StreamSet &set : *sets) {
      for (EntryLayout &entry : set.entries) {
        if (!hasGradients(static_cast<size_t>(entry.lookup))) {
          entry.readers = Readers::none();
          entry.relayed = false;
        }
        anyRelayed |= entry.relayed;
      }
      placePooledColumns(set);
    }
  layout.relays.clear();
  if (anyRelayed)
    layout.relays.resize(static_cast<size_t>(groups.numGroups()));
  addRelays(groups, layout);
  return layout;
}

} // namespace neuroshard
