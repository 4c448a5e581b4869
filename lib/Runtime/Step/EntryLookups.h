//===- EntryLookups.h - Entries of an exchange as lookups -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_ENTRYLOOKUPS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_ENTRYLOOKUPS_H

#include "Device/Device.h"

#include <functional>
#include <vector>

namespace neuroshard::runtime {

/// Adds the lookups of those entries of a set for which `takes(entry)`. Blocks
/// are per rank and lie one after the other from `rows` on.
void addLookups(const StreamSet &set, const ReceivedSet &received,
                const std::vector<Block> &blocks, float *rows,
                const std::function<bool(const EntryLayout &)> &takes,
                std::vector<LookupPart> &parts);

/// Runs the lookups whose results go by relay, for the samples of a piece.
void lookUpRelayed(Device &device, const Routed &routed,
                   const Partials &partials, const RelayedPiece &piece);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_ENTRYLOOKUPS_H
