//===- ComputeSamples.cpp - Writes measured shard sets --------------------===//

#include "neuroshard/CostModel/ComputeSamples.h"

#include "ComputeSamplesColumns.h"

#include "neuroshard/CostModel/Safetensors.h"

using namespace neuroshard;
using namespace neuroshard::compute_samples;

namespace {

template <typename T>
void add(TensorFile &file, const char *name, const std::vector<T> &values,
         std::vector<int64_t> shape = {}) {
  file.tensors[name] = makeTensor<T>(values, std::move(shape));
}

/// A shard's statistics must be those of its table: only the index is kept.
Diagnostics checkBeforeWriting(const ComputeSamples &samples) {
  Diagnostics errors;
  size_t poolSize = samples.access ? samples.access->size() : 0;
  for (size_t i = 0; i < samples.samples.size(); ++i)
    for (const ShardWork &shard : samples.samples[i].shards) {
      if (shard.table < 0 || static_cast<size_t>(shard.table) >= poolSize) {
        errors.push_back({sampleName(i), "table " +
                                             std::to_string(shard.table) +
                                             " is not in the pool of " +
                                             std::to_string(poolSize)});
        return errors;
      }
      const AccessStatistics &access =
          (*samples.access)[static_cast<size_t>(shard.table)];
      bool same = shard.access ? *shard.access == access : access.batch == 0;
      if (!same)
        errors.push_back({sampleName(i), "the access statistics of table " +
                                             std::to_string(shard.table) +
                                             " are not those of the pool"});
    }
  return errors;
}

void addPool(const ComputeSamples &samples, TensorFile &file) {
  std::vector<double> reuse;
  std::vector<int64_t> batch;
  if (samples.access)
    for (const AccessStatistics &access : *samples.access) {
      reuse.insert(reuse.end(), access.reuse.begin(), access.reuse.end());
      batch.push_back(access.batch);
    }
  add(file, "pool.reuse", reuse,
      {static_cast<int64_t>(batch.size()), kReuseBins});
  add(file, "pool.batch", batch);
}

void addSamples(const ComputeSamples &samples, TensorFile &file) {
  std::vector<int64_t> first = {0};
  for (const ComputeSample &sample : samples.samples)
    first.push_back(first.back() + static_cast<int64_t>(sample.shards.size()));
  add(file, "sample.first_shard", first);
  forEachSampleField([&](const char *name, auto zero, auto member) {
    std::vector<decltype(zero)> column;
    for (const ComputeSample &sample : samples.samples)
      column.push_back(static_cast<decltype(zero)>(member(sample)));
    add(file, name, column);
  });
  forEachShardField([&](const char *name, auto zero, auto member) {
    std::vector<decltype(zero)> column;
    for (const ComputeSample &sample : samples.samples)
      for (const ShardWork &shard : sample.shards)
        column.push_back(static_cast<decltype(zero)>(shard.*member));
    add(file, name, column);
  });
}

} // namespace

Expected<void> neuroshard::writeComputeSamples(const ComputeSamples &samples,
                                               const std::string &path) {
  if (Diagnostics errors = checkBeforeWriting(samples); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  file.metadata = samples.metadata;
  file.metadata["schema"] = kSchema;
  addPool(samples, file);
  addSamples(samples, file);
  return writeTensorFile(file, path);
}
