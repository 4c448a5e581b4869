//===- SetList.cpp - Files of random shard sets ---------------------------===//

#include "neuroshard/Collect/SetList.h"

#include <cmath>

using namespace neuroshard;

bool neuroshard::isHeldOutSet(double heldOutShare, int64_t set) {
  return std::floor(static_cast<double>(set + 1) * heldOutShare) >
         std::floor(static_cast<double>(set) * heldOutShare);
}

ComputeSample neuroshard::sampleOf(const MeasuredSet &set,
                                   const TablePool &pool) {
  ComputeSample sample;
  sample.shards = describeSet(set);
  for (ShardWork &shard : sample.shards) {
    shard.table =
        poolIndex(set.problem.tables[static_cast<size_t>(shard.table)]);
    shard.access = &(*pool.access)[static_cast<size_t>(shard.table)];
  }
  sample.batch = set.problem.batch.globalSize;
  return sample;
}

Expected<void> neuroshard::writeSetList(const SetListOptions &options) {
  TablePool pool = makeTablePool(kPoolSeed);
  ComputeSamples list;
  list.access = pool.access;
  list.metadata = {{"device_class", options.deviceClass},
                   {"measured", "false"},
                   {"pool_seed", std::to_string(kPoolSeed)},
                   {"samples_planned", std::to_string(options.samples)},
                   {"seed", std::to_string(options.seed)}};
  for (int64_t index = 0; index < options.samples; ++index) {
    RandomSetOptions drawn = options.sets;
    drawn.heldOut = isHeldOutSet(options.heldOutShare, index);
    ComputeSample sample =
        sampleOf(makeRandomSet(pool, drawn, options.seed, index), pool);
    sample.set = index;
    sample.heldOut = drawn.heldOut;
    list.samples.push_back(std::move(sample));
  }
  return writeComputeSamples(list, options.path);
}
