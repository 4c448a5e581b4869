//===- Replicas.h - Small hot tables replicated to save time ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_REPLICAS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_REPLICAS_H

#include "Units/UnitOperations.h"

#include <vector>

namespace neuroshard {

/// Does the model price replicas? Otherwise no search makes replicas unless the
/// rules ask for them.
bool pricesReplicas(const SearchContext &context);

/// The units with all those replicated that may be. Returns the units
/// themselves if the model does not price replicas.
std::vector<UnitPtr> allReplicated(const SearchContext &context,
                                   const std::vector<UnitPtr> &units);

/// The units with small hot tables replicated on every device, if that makes
/// the average device cheaper and leaves it most of its free memory. Returns
/// the units themselves if there are no such tables, or if the model does not
/// price replicas: that takes a SumEmbedding and a backward time, in which
/// replicas cost more.
std::vector<UnitPtr> withReplicas(const SearchContext &context,
                                  const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_REPLICAS_H
