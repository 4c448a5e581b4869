//===- SetList.h - Files of random shard sets -------------------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_SETLIST_H
#define NEUROSHARD_COLLECT_SETLIST_H

#include "neuroshard/Collect/RandomSets.h"
#include "neuroshard/CostModel/ComputeSamples.h"

#include <cstdint>
#include <string>

namespace neuroshard {

struct SetListOptions {
  std::string path;
  /// Sets to list, the held-out ones among them.
  int64_t samples = 200;
  /// Share of the sets that is made of held-out tables.
  double heldOutShare = 0.12;
  uint64_t seed = 1;
  /// Class of the device that will measure them, as planners name it.
  std::string deviceClass;
  /// `heldOut` is not read.
  RandomSetOptions sets;
};

/// Writes random sets as samples without times (all 0, "measured" is "false").
/// A machine without this library can measure them and fill in the times. The
/// sets of a seed and a pool are those of collectCompute.
Expected<void> writeSetList(const SetListOptions &options);

/// Whether set number `set` is made of held-out tables; they come evenly.
bool isHeldOutSet(double heldOutShare, int64_t set);

/// The set as a sample without times.
ComputeSample sampleOf(const MeasuredSet &set, const TablePool &pool);

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_SETLIST_H
