//===- Placement.h - Greedy placement by a key or by memory -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_PLACEMENT_PLACEMENT_H
#define NEUROSHARD_LIB_PLANNER_PLACEMENT_PLACEMENT_H

#include "Units/SearchState.h"

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard {

/// Indices of the units that have a choice, highest key first (stable).
std::vector<size_t>
movableByKey(const SearchState &state,
             const std::function<double(const Unit &)> &key);

/// Places each unit on the device with the smallest sum of keys so far.
bool placeByKey(SearchState &state, std::span<const size_t> order,
                const std::function<double(const Unit &)> &key);

/// The quantity that placeByMemory() balances.
enum class Balance { Memory, MemoryAndCompute };

/// Places each unit, the one with the largest share of a device first, on the
/// device that is then the least full. A unit that fits nowhere is cut: as much
/// as fits goes to the device with the most room. Nothing when even that fails;
/// `blocking` then is the unit.
std::optional<SearchState> placeByMemory(const SearchContext &context,
                                         const std::vector<UnitPtr> &units,
                                         Balance balance, UnitPtr &blocking);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_PLACEMENT_PLACEMENT_H
