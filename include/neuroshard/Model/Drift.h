//===- Drift.h - Rules on copies with sync_every ----------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_DRIFT_H
#define NEUROSHARD_MODEL_DRIFT_H

#include "neuroshard/Model/Optimizer.h"

#include <cstdint>
#include <string>

namespace neuroshard {

/// How a shard's copies drift.
struct SyncedCopies {
  int64_t syncEvery = 0; ///< 0: they do not.
  int64_t copies = 1;
};

/// The copies of all shards of a table drift alike, if they do: what is wrong
/// with a shard beside the first one of its table, or "".
std::string driftMismatch(const SyncedCopies &first, const SyncedCopies &other);

/// Why copies of a table with this optimizer cannot drift; "" if they can.
std::string optimizerDriftError(const Optimizer &optimizer);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_DRIFT_H
