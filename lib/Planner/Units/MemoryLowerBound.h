//===- MemoryLowerBound.h - Lower bound of memory over all cuts -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_MEMORYLOWERBOUND_H
#define NEUROSHARD_LIB_PLANNER_UNITS_MEMORYLOWERBOUND_H

#include "UnitOperations.h"

namespace neuroshard {

/// The number of devices that hold a unit: one or all.
int64_t copiesOf(const SearchContext &context, const Unit &unit);

/// Each term `factor` times.
MemoryTerms scaled(const MemoryTerms &terms, int64_t factor);

/// A lower bound of the memory of a unit's shards, summed over all devices, for
/// any cut of them and for replicas where these are allowed.
MemoryTerms leastOf(const SearchContext &context, const Unit &unit);

/// May the tables of this unit take other forms than that of the unit?
bool hasOtherForms(const SearchContext &context, const Unit &unit);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_MEMORYLOWERBOUND_H
