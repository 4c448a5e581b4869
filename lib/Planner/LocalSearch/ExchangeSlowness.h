//===- ExchangeSlowness.h - Devices that exchange slower --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EXCHANGESLOWNESS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EXCHANGESLOWNESS_H

#include "Units/SearchContext.h"

#include <array>
#include <span>
#include <vector>

namespace neuroshard {

/// How many times as long as the fastest each device exchanges the mean of the
/// loads, by direction and device; empty where all are alike.
std::array<std::vector<double>, 3>
exchangeSlowness(const SearchContext &context,
                 std::span<const DeviceLoad> loads);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EXCHANGESLOWNESS_H
