//===- MemoryLowerBound.h - Lower bound of memory over all cuts -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_MEMORYLOWERBOUND_H
#define NEUROSHARD_LIB_PLANNER_UNITS_MEMORYLOWERBOUND_H

#include "UnitOperations.h"

namespace neuroshard {

/// Placements of a unit: one, or all devices.
int64_t copiesOf(const SearchContext &context, const Unit &unit);

/// The terms of a unit `factor` times.
MemoryTerms scaled(const MemoryTerms &terms, int64_t factor);

/// At most what the shards of a unit take in all, however they are cut, or, if
/// that is less and allowed, all replicas of their tables.
MemoryTerms leastOf(const SearchContext &context, const Unit &unit);

/// Could the tables of this unit take another form than the one it was given?
bool hasOtherForms(const SearchContext &context, const Unit &unit);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_MEMORYLOWERBOUND_H
