//===- ExchangeCounts.h - Sizes of one step's messages ----------*- C++ -*-===//
//
// What one rank brings to an exchange for one set of streams, by the engine
// that packs it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_EXCHANGECOUNTS_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_EXCHANGECOUNTS_H

#include "neuroshard/Artifact/MessageLayout.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <vector>

namespace neuroshard {

class ExchangeCounts {
public:
  ExchangeCounts(const ExchangePlan &plan, size_t exchange,
                 const ExchangeLoad &load);

  /// None if the rank is no reader of the stream.
  int64_t idsOf(const StreamLayout &stream, size_t rank) const {
    return stream.readers.contains(static_cast<int64_t>(rank))
               ? load.ids(rank, static_cast<size_t>(stream.bucket))
               : 0;
  }
  int64_t idsOfAll(const StreamLayout &stream) const;
  /// Of the ranks that read an entry.
  int64_t idsOfReaders(const StreamSet &set, const EntryLayout &entry) const;

  /// The bytes of the ids, and the values for them.
  int64_t payloadBytes(const StreamSet &set, size_t rank) const;
  Block blockOf(const StreamSet &set, size_t rank) const;
  /// How replicated tables are updated; `exchange` is that of `spec`.
  ReplicaUpdate replicaUpdate(const ExchangePlan &plan, size_t exchange,
                              const ExchangeLayout &layout) const;
  /// Bytes of what travels directly.
  int64_t directBytes(const StreamSet &set, size_t rank,
                      WireFormat format) const;

  const ExchangeSpec &spec;
  const ExchangeLoad &load;
  int32_t packedIdBytes;
  size_t count; ///< of ranks.
  /// The ranks, in runs of those that bring the same and read the same copies.
  std::vector<DeviceRange> runs;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_EXCHANGECOUNTS_H
