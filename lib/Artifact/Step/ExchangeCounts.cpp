//===- ExchangeCounts.cpp - Sizes of one step's messages ------------------===//

#include "ExchangeCounts.h"

#include "neuroshard/Artifact/IdPayload.h"

namespace neuroshard {

ExchangeCounts::ExchangeCounts(const ExchangePlan &plan, size_t exchange,
                               const ExchangeLoad &load)
    : spec(plan.exchanges[exchange]), load(load),
      packedIdBytes(plan.packedIdBytes(spec)), count(load.batches.size()),
      runs(load.alike()) {}

int64_t ExchangeCounts::idsOfAll(const StreamLayout &stream) const {
  int64_t ids = 0;
  for (const DeviceRange &ranks : runs)
    ids += idsOf(stream, ranks.begin) * static_cast<int64_t>(ranks.size());
  return ids;
}

int64_t ExchangeCounts::payloadBytes(const StreamSet &set, size_t rank) const {
  std::vector<int64_t> ids;
  for (const StreamLayout &stream : set.streams)
    ids.push_back(idsOf(stream, rank));
  return IdPayload(set, load.batches[rank], packedIdBytes, ids).bytes();
}

Block ExchangeCounts::blockOf(const StreamSet &set, size_t rank) const {
  return makeBlock(set, load.batches[rank], [&](size_t stream) {
    return idsOf(set.streams[stream], rank);
  });
}

ReplicaUpdate
ExchangeCounts::replicaUpdate(const ExchangePlan &plan, size_t exchange,
                              const ExchangeLayout &layout) const {
  const StreamSet &local = layout.locals.front();
  int64_t bags = 0;
  for (int64_t batch : load.batches)
    bags += batch;
  std::vector<int64_t> ids;
  for (const StreamLayout &stream : local.streams)
    ids.push_back(idsOfAll(stream));
  return makeReplicaUpdate(plan, exchange, local, bags, ids);
}

int64_t ExchangeCounts::directBytes(const StreamSet &set, size_t rank,
                                    WireFormat format) const {
  Block block =
      makeDirectBlock(set, load.batches[rank], format, [&](size_t stream) {
        return idsOf(set.streams[stream], rank);
      });
  return block.size * valueBytes(format);
}

} // namespace neuroshard
