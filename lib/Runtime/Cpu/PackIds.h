//===- PackIds.h - Checks ids and sorts them by owner -----------*- C++ -*-===//
//
// Threads work on chunks of bags of one lookup. The place of each chunk in the
// output is known before it is written, so the order of ids does not depend on
// the threads.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_PACKIDS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_PACKIDS_H

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <vector>

namespace neuroshard::runtime {

class CpuIdPacker : public IdPacker {
public:
  CpuIdPacker(const Manifest &manifest, int32_t exchange,
              const JaggedInput &input, int64_t batch, ThreadPool &threads);

  IdCounts count() override;
  void pack(const PackTargets &targets) override;

private:
  struct Chunk {
    int32_t lookup;
    Range bags;
    int32_t number;     ///< index among the chunks of the lookup.
    int64_t badId = -1; ///< position of the first; -1: none was found.
  };

  void makeChunks();
  void countBuckets();
  void throwBadId() const;
  void fillChunk(Chunk &chunk, const PackTargets &targets) const;
  void countBags(const Chunk &chunk, float *counts) const;
  void copyToOthers(const Chunk &chunk, int32_t bucket,
                    const std::vector<IdTarget> &targets) const;

  template <typename Id> void countChunk(Chunk &chunk);
  template <typename Id, typename Packed>
  void fillWhole(Chunk &chunk, int32_t bucket, const IdTarget &target) const;
  template <typename Id, typename Packed>
  void fillSifted(const Chunk &chunk, int32_t bucket, const IdTarget &target,
                  int64_t *places) const;
  template <typename Id, typename Packed>
  void fillBucket(Chunk &chunk, int32_t bucket,
                  const PackTargets &targets) const;

  Range idsOf(const Chunk &chunk) const;
  /// Offsets of the bags of a lookup's feature, [batch + 1].
  const int64_t *offsetsOf(const ExchangeLookup &lookup) const;
  const ExchangeLookup &lookupOf(int32_t bucket) const;
  int64_t rowsOf(const ExchangeLookup &lookup) const;
  /// The id that a bucket leaves out, -1 if none.
  static int64_t paddingOf(const ExchangeLookup &lookup) {
    return lookup.dropsPadding() ? *lookup.paddingIdx : -1;
  }

  const Manifest &manifest;
  const ExchangeSpec &spec;
  const ExchangeLayout &layout;
  JaggedInput input;
  int64_t batch;
  int64_t packedBytes; ///< of an id.
  ThreadPool &threads;

  std::vector<Chunk> chunks;
  /// Per bucket: the first id of each chunk, then the number of ids.
  std::vector<std::vector<int64_t>> firstIds;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_PACKIDS_H
