//===- CopySums.cpp - Sums that copies of shards exchange -----------------===//

#include "CopySums.h"

#include "neuroshard/Artifact/CopyReaders.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"

#include <numeric>

namespace neuroshard {

/// The bytes of a row's number: of the ids of the shard's first lookup. None if
/// nothing reads the table.
static int32_t idBytesOf(const ExchangePlan &plan, int32_t shard) {
  const ShardSpec &spec = plan.shards[static_cast<size_t>(shard)];
  const DeviceBinding &binding =
      plan.bindings[static_cast<size_t>(spec.devices.front())];
  const LookupBinding *lookup = binding.firstLookupOf(shard);
  return lookup ? plan.packedIdBytes(
                      plan.exchanges[static_cast<size_t>(lookup->exchange)])
                : 0;
}

std::vector<CopiedRows> copiedRows(const ExchangePlan &plan,
                                   const StepLoad &load) {
  std::vector<CopiedRows> all;
  DeviceGroups groups(plan);
  for (int32_t number : plan.trainedCopies()) {
    const ShardSpec &shard = plan.shards[static_cast<size_t>(number)];
    int32_t idBytes = idBytesOf(plan, number);
    if (idBytes == 0)
      continue;
    CopiedRows &copied = all.emplace_back();
    copied.shard = &shard;
    copied.message = {idBytes, shard.cols.size(),
                      rowSumFormat(plan.wireType.gradients)};
    copied.readers = readersOfCopies(groups, shard.devices);
    for (const Readers &readers : copied.readers)
      copied.rows.push_back(
          load.distinctRows(shard.table, shard.rows, readers));
    copied.allRows =
        std::accumulate(copied.rows.begin(), copied.rows.end(), int64_t{0});
  }
  return all;
}

void countCopySums(const ExchangePlan &plan, const StepLoad &load,
                   const PairReceiver &add) {
  for (const CopiedRows &copied : copiedRows(plan, load))
    for (size_t copy = 0; copy < copied.rows.size(); ++copy)
      for (int32_t receiver : copied.shard->devices)
        add(static_cast<size_t>(copied.shard->devices[copy]),
            static_cast<size_t>(receiver),
            copied.message.bytes(copied.rows[copy]));
}

} // namespace neuroshard
