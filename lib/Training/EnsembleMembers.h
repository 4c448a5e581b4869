//===- EnsembleMembers.h - Trains the members of an ensemble ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRAINING_ENSEMBLEMEMBERS_H
#define NEUROSHARD_LIB_TRAINING_ENSEMBLEMEMBERS_H

#include "neuroshard/Training/Options.h"

#include "Layers/FitOptions.h"

#include <cstddef>

namespace neuroshard {

/// Calls train(member, fit options) for each member, on as many threads as
/// asked for. A member's options depend on nothing but its number, `options`
/// and the number of training samples.
void trainMembers(const TrainingOptions &options, size_t samples,
                  const std::function<void(size_t, const FitOptions &)> &train);

/// Seed of a member's other random choices.
uint64_t memberSeed(const TrainingOptions &options, size_t member);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_ENSEMBLEMEMBERS_H
