//===- ComputeSamplesReader.cpp - Reads measured shard sets ---------------===//

#include "ComputeSamplesColumns.h"
#include "neuroshard/CostModel/ComputeSamples.h"

#include "neuroshard/CostModel/DriftCorrection.h"
#include "neuroshard/CostModel/Safetensors.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;
using namespace neuroshard::compute_samples;

namespace {

class ComputeColumnsReader {
public:
  explicit ComputeColumnsReader(const TensorFile &file) : file(file) {}

  Expected<ComputeSamples> read();

private:
  template <typename T>
  std::vector<T> column(const char *name, std::vector<int64_t> shape) {
    Expected<std::vector<T>> values = file.get<T>(name, shape);
    if (values)
      return std::move(*values);
    errors.insert(errors.end(), values.error().begin(), values.error().end());
    return {};
  }
  void readPool();
  void readSamples();
  void readShards();
  void checkSamples();
  void checkShards();
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }

  const TensorFile &file;
  Diagnostics errors;
  ComputeSamples result;
  std::vector<int64_t> firstShard;
  std::vector<ShardWork> shards;
};

void ComputeColumnsReader::readPool() {
  std::vector<int64_t> batch = column<int64_t>("pool.batch", {-1});
  std::vector<double> reuse = column<double>(
      "pool.reuse", {static_cast<int64_t>(batch.size()), kReuseBins});
  if (!errors.empty())
    return;
  auto pool = std::make_shared<std::vector<AccessStatistics>>(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    std::copy_n(reuse.begin() + static_cast<ptrdiff_t>(i * kReuseBins),
                kReuseBins, (*pool)[i].reuse.begin());
    (*pool)[i].batch = batch[i];
  }
  result.access = std::move(pool);
}

void ComputeColumnsReader::readSamples() {
  firstShard = column<int64_t>("sample.first_shard", {-1});
  if (!errors.empty())
    return;
  bool ascending = std::is_sorted(firstShard.begin(), firstShard.end());
  if (firstShard.empty() || firstShard.front() != 0 || !ascending)
    return error("sample.first_shard", "expected ascending numbers from 0");
  result.samples.resize(firstShard.size() - 1);
  int64_t count = static_cast<int64_t>(result.samples.size());
  forEachSampleField([&](const char *name, auto zero, auto member) {
    auto values = column<decltype(zero)>(name, {count});
    for (size_t i = 0; i < values.size(); ++i) {
      auto &target = member(result.samples[i]);
      target =
          static_cast<std::remove_reference_t<decltype(target)>>(values[i]);
    }
  });
}

void ComputeColumnsReader::readShards() {
  // Bounded by the column in the file, since first_shard may be damaged.
  std::vector<int64_t> rows =
      column<int64_t>("shard.rows", {firstShard.back()});
  if (!errors.empty())
    return;
  shards.resize(rows.size());
  forEachShardField([&](const char *name, auto zero, auto member) {
    auto values = column<decltype(zero)>(name, {firstShard.back()});
    for (size_t i = 0; i < values.size(); ++i) {
      auto &target = shards[i].*member;
      target =
          static_cast<std::remove_reference_t<decltype(target)>>(values[i]);
    }
  });
}

void ComputeColumnsReader::checkShards() {
  for (size_t i = 0; i < shards.size() && errors.empty(); ++i) {
    ShardWork &shard = shards[i];
    std::string where = "shard " + std::to_string(i);
    if (shard.table < 0 ||
        static_cast<size_t>(shard.table) >= result.access->size()) {
      error(where, "table " + std::to_string(shard.table) +
                       " is not in the pool of " +
                       std::to_string(result.access->size()));
      continue;
    }
    if (shard.elementType > ElementType::BF16 ||
        shard.outputType > ElementType::BF16 ||
        !isOptimizerKind(shard.optimizer))
      error(where, "unknown element type, output type or optimizer");
    if (shard.rows <= 0 || shard.width <= 0 || !std::isfinite(shard.lookups) ||
        shard.lookups < 0)
      error(where, "expected positive rows and width, and a count of lookups");
    const AccessStatistics &access =
        (*result.access)[static_cast<size_t>(shard.table)];
    shard.access = access.batch > 0 ? &access : nullptr;
  }
}

void ComputeColumnsReader::checkSamples() {
  int64_t count = static_cast<int64_t>(result.samples.size());
  for (size_t i = 0; i < result.samples.size() && errors.empty(); ++i) {
    const ComputeSample &sample = result.samples[i];
    for (double ms : {sample.measured.forwardMs, sample.measured.backwardMs,
                      sample.referenceBeforeMs, sample.referenceAfterMs})
      if (!std::isfinite(ms) || ms <= 0)
        return error(sampleName(i), "expected finite times above 0 ms");
    if (sample.batch <= 0)
      error(sampleName(i), "expected a batch of at least 1");
    if (sample.repeatOf < -1 || sample.repeatOf >= count)
      error(sampleName(i), "it repeats sample " +
                               std::to_string(sample.repeatOf) +
                               ", but there are " + std::to_string(count));
  }
}

/// Removes the machine's drift: see ComputeSample::corrected.
void correct(std::vector<ComputeSample> &samples) {
  std::vector<double> referenceMs;
  for (const ComputeSample &sample : samples)
    referenceMs.push_back(0.5 *
                          (sample.referenceBeforeMs + sample.referenceAfterMs));
  std::vector<double> factors = driftFactors(referenceMs);
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i].corrected = {samples[i].measured.forwardMs * factors[i],
                            samples[i].measured.backwardMs * factors[i]};
}

Expected<ComputeSamples> ComputeColumnsReader::read() {
  auto schema = file.metadata.find("schema");
  if (schema == file.metadata.end() || schema->second != kSchema)
    return failure("schema",
                   "expected '" + std::string(kSchema) + "', got '" +
                       (schema == file.metadata.end() ? "" : schema->second) +
                       "'");
  result.metadata = file.metadata;
  result.metadata.erase("schema");
  readPool();
  if (errors.empty())
    readSamples();
  if (errors.empty())
    readShards();
  if (errors.empty())
    checkShards();
  if (errors.empty())
    checkSamples();
  if (!errors.empty())
    return tl::unexpected(errors);
  for (size_t i = 0; i < result.samples.size(); ++i)
    result.samples[i].shards.assign(
        shards.begin() + static_cast<ptrdiff_t>(firstShard[i]),
        shards.begin() + static_cast<ptrdiff_t>(firstShard[i + 1]));
  correct(result.samples);
  return std::move(result);
}

} // namespace

Expected<ComputeSamples>
neuroshard::readComputeSamples(const std::string &path) {
  return readTensorFile(path, [](const TensorFile &file) {
    return ComputeColumnsReader(file).read();
  });
}
