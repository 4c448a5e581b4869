//===- Drift.cpp - Rules on copies with sync_every ------------------------===//

#include "neuroshard/Model/Drift.h"

namespace neuroshard {

std::string driftMismatch(const SyncedCopies &first,
                          const SyncedCopies &other) {
  if (other.syncEvery != first.syncEvery)
    return "must have the sync_every of the other shards of its table, " +
           std::to_string(first.syncEvery) +
           ", got: " + std::to_string(other.syncEvery);
  if (other.syncEvery != 0 && other.copies != first.copies)
    return "must have as many copies as the other shards of its table, since "
           "they drift: " +
           std::to_string(first.copies) +
           ", got: " + std::to_string(other.copies);
  return "";
}

std::string optimizerDriftError(const Optimizer &optimizer) {
  if (optimizer.catchUp)
    return "copies of a table whose rows catch up cannot drift, since each "
           "copy has caught up with other rows; leave out sync_every or "
           "catch_up";
  if (propertiesOf(optimizer.kind).hasCounters)
    return "copies of a table whose optimizer counts steps of rows cannot "
           "drift, since counts and step numbers have no mean; leave out "
           "sync_every";
  return "";
}

} // namespace neuroshard
