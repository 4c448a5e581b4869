//===- Replicas.h - Small hot tables replicated to save time ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_REPLICAS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_REPLICAS_H

#include "Units/UnitOperations.h"

#include <vector>

namespace neuroshard {

/// Does the model say what replicas cost? Otherwise no search makes any
/// unasked.
bool pricesReplicas(const SearchContext &context);

/// Every unit that may be, on all devices; the units themselves where models
/// say nothing about replicas.
std::vector<UnitPtr> allReplicated(const SearchContext &context,
                                   const std::vector<UnitPtr> &units);

/// The units with small hot tables replaced by replicas on every device: those
/// that make the average device cheaper and leave it most of its free memory.
/// The units as they are when there are none, or when the model cannot tell
/// what replicas cost: it needs a SumEmbedding and a backward time, which is
/// where replicas cost more.
std::vector<UnitPtr> withReplicas(const SearchContext &context,
                                  const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_REPLICAS_H
