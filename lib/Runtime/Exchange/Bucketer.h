//===- Bucketer.h - Checks ids and sorts them by owner ---------*- C++ -*-===//
//
// Fills the payloads of one exchange from the local batch. Threads work on
// chunks of bags of one lookup. The place of each chunk in the output is known
// before it is written, so the order of ids does not depend on the threads.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_BUCKETER_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_BUCKETER_H

#include "IdExchange.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <vector>

namespace neuroshard::runtime {

class Bucketer {
public:
  Bucketer(Device &device, const JaggedInput &input, Routed &routed);

  /// Fills the payloads and routed.lookups and routed.buckets. Throws a
  /// RuntimeError that names the first id (by lookup and position) that is
  /// out of range.
  void run();

  /// The payloads for the devices in order, and their sizes.
  Buffer payloads;
  std::vector<int64_t> payloadBytes;

private:
  struct Chunk {
    int32_t lookup;
    Range bags;
    int32_t number; ///< index among the chunks of the lookup.
  };

  struct BadId {
    int64_t position = -1;
  };

  /// Where the ids of a bucket are written. Bags are described by their lengths
  /// or, if the ids stay on this device, by the offsets that its kernels read.
  struct Target {
    int32_t *lengths;
    int64_t *offsets;
    std::byte *ids;
    float *weights;
  };

  void makeChunks();
  void countIds();
  void keepStreams();
  void placePayloads();
  void placePayload(const StreamSet &set, std::byte *memory,
                    const IdPayload &layout);
  void fill();
  void fillChunk(size_t chunk);
  void countBags(const Chunk &chunk);
  void throwBadId();

  template <typename Id> void countChunk(size_t chunk);
  template <typename Id> void fillBucket(size_t chunk, int32_t bucket);
  template <typename Id>
  void fillWhole(size_t chunk, int32_t bucket, const Target &target);
  template <typename Id>
  void fillSifted(const Chunk &chunk, int32_t bucket, const Target &target);
  void copyToOthers(const Chunk &chunk, int32_t bucket);

  Target targetOf(const Destination &destination) const;
  Range idsOf(const Chunk &chunk) const;
  const ExchangeLookup &lookupOf(int32_t bucket) const;

  Device &device;
  const ExchangeSpec &spec;
  const ExchangeLayout &layout;
  const JaggedInput &input;
  Routed &routed;

  std::vector<Chunk> chunks;
  std::vector<int32_t> chunksOfLookup;
  /// Per bucket: the first id of each chunk, then the number of ids.
  std::vector<std::vector<int64_t>> firstIds;
  std::vector<BadId> badIds; ///< the first of each chunk.

  /// Offsets of the streams that stay on this device, batch + 1 each; else
  /// null.
  int64_t *keptOffsets = nullptr;
  std::vector<IdPayload> ownerLayouts; ///< per device.
  std::vector<std::byte *> ownerPayloads;
  std::vector<IdPayload> localLayout; ///< at most one.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_BUCKETER_H
