//===- ComputeTraining.cpp - Trains compute models ------------------------===//

#include "neuroshard/Training/ComputeTraining.h"

#include "ComputeNetwork.h"
#include "EnsembleMembers.h"
#include "Layers/Standardise.h"

#include "neuroshard/Training/ComputeEvaluation.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

SetData featuresOf(const ComputeSamples &samples,
                   std::span<const size_t> indices) {
  SetData data;
  data.featureCount = kFeatureCount;
  for (size_t i : indices) {
    for (const ShardWork &shard : samples.samples[i].shards) {
      size_t end = data.features.size();
      data.features.resize(end + kFeatureCount);
      featurize(shard, std::span(data.features).subspan(end));
    }
    data.firstShard.push_back(static_cast<int64_t>(data.features.size()) /
                              kFeatureCount);
  }
  data.times = correctedTimes(samples, indices);
  return data;
}

/// Samples need shards and positive finite times, since losses take logarithms.
Expected<void> checkSamples(const ComputeSamples &samples,
                            std::span<const size_t> indices) {
  for (size_t i : indices) {
    const ComputeSample &sample = samples.samples[i];
    std::string where = "samples[" + std::to_string(i) + "]";
    if (sample.shards.empty())
      return failure(where, "expected at least one shard");
    for (double ms : {sample.corrected.forwardMs, sample.corrected.backwardMs})
      if (!(ms > 0) || !std::isfinite(ms))
        return failure(where, "expected positive times, got: " +
                                  std::to_string(ms) + " ms");
  }
  return {};
}

/// Extends the range of a model's features to the training samples, and keeps
/// its mean and deviation.
void widenRange(FeatureScale &scale, const FeatureScale &seen) {
  for (size_t f = 0; f < seen.min.size(); ++f) {
    scale.min[f] = std::min(scale.min[f], seen.min[f]);
    scale.max[f] = std::max(scale.max[f], seen.max[f]);
  }
}

int64_t mostShards(const SetData &data) {
  int64_t most = 0;
  for (size_t i = 0; i < data.size(); ++i)
    most = std::max(most, data.firstShard[i + 1] - data.firstShard[i]);
  return most;
}

} // namespace

Expected<NeuralComputeParameters>
neuroshard::trainCompute(const ComputeSamples &samples, const Split &split,
                         const TrainingOptions &options,
                         const NeuralComputeParameters *from) {
  Expected<const DeviceClass *> deviceClass = deviceClassOf(samples);
  if (!deviceClass)
    return tl::unexpected(deviceClass.error());
  for (const std::vector<size_t> *part : {&split.training, &split.validation})
    if (Expected<void> sound = checkSamples(samples, *part); !sound)
      return tl::unexpected(sound.error());

  SetData training = featuresOf(samples, split.training);
  SetData validation = featuresOf(samples, split.validation);
  NeuralComputeParameters parameters;
  FeatureScale seen = scaleOf(training.features, kFeatureCount);
  if (from) {
    parameters = *from;
    widenRange(parameters.features, seen);
  } else {
    parameters.features = seen;
    parameters.members.resize(static_cast<size_t>(options.members));
  }
  parameters.deviceClass = (*deviceClass)->name;
  parameters.measured = true;
  parameters.maxShards = std::max(parameters.maxShards, mostShards(training));
  parameters.card = "{}";
  for (SetData *data : {&training, &validation})
    standardise(data->features, parameters.features, kRangeMargin);

  TrainingOptions own = options;
  own.members = static_cast<int>(parameters.members.size());
  trainMembers(own, training.size(),
               [&](size_t member, const FitOptions &fitOptions) {
                 ComputeNetwork network =
                     from ? networkOf(parameters.members[member])
                          : newComputeNetwork(memberSeed(own, member));
                 centerComputeNetwork(network, training);
                 fitComputeNetwork(network, training, validation, fitOptions);
                 parameters.members[member] = memberOf(std::move(network));
               });
  return parameters;
}

std::vector<ComputeMs>
neuroshard::predictWithTorch(const NeuralComputeParameters &parameters,
                             const ComputeSamples &samples,
                             std::span<const size_t> indices) {
  SetData data = featuresOf(samples, indices);
  standardise(data.features, parameters.features, kRangeMargin);
  std::vector<ComputeMs> logs(data.size());
  double share = 1.0 / static_cast<double>(parameters.members.size());
  for (const NeuralComputeMember &member : parameters.members) {
    std::vector<ComputeMs> times = predictSets(networkOf(member), data);
    for (size_t i = 0; i < times.size(); ++i) {
      logs[i].forwardMs += share * std::log(times[i].forwardMs);
      logs[i].backwardMs += share * std::log(times[i].backwardMs);
    }
  }
  for (ComputeMs &time : logs)
    time = {std::exp(time.forwardMs), std::exp(time.backwardMs)};
  return logs;
}

Expected<ComputeSamples>
neuroshard::mergeSamples(std::vector<ComputeSamples> parts) {
  if (parts.empty())
    return failure("data", "expected at least one file of samples");
  auto access = std::make_shared<std::vector<AccessStatistics>>();
  ComputeSamples merged;
  merged.metadata = parts.front().metadata;
  for (ComputeSamples &part : parts) {
    if (part.metadata["device_class"] != merged.metadata["device_class"])
      return failure("data", "expected samples of one device class, got " +
                                 merged.metadata["device_class"] + " and " +
                                 part.metadata["device_class"]);
    int firstTable = static_cast<int>(access->size());
    int64_t firstSample = static_cast<int64_t>(merged.samples.size());
    access->insert(access->end(), part.access->begin(), part.access->end());
    for (ComputeSample &sample : part.samples) {
      if (sample.repeatOf >= 0)
        sample.repeatOf += firstSample;
      for (ShardWork &shard : sample.shards)
        shard.table += firstTable;
      merged.samples.push_back(std::move(sample));
    }
  }
  for (ComputeSample &sample : merged.samples)
    for (ShardWork &shard : sample.shards)
      if (shard.access)
        shard.access = &(*access)[static_cast<size_t>(shard.table)];
  merged.access = std::move(access);
  return merged;
}
