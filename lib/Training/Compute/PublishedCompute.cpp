//===- PublishedCompute.cpp - The NeuroShard paper's compute model --------===//
//
// A baseline for figures only; there are no files of such models.
//
//===----------------------------------------------------------------------===//

#include "ComputeNetwork.h"
#include "Layers/Standardise.h"

#include "neuroshard/Training/ComputeEvaluation.h"

using namespace neuroshard;

namespace {

constexpr int64_t kFeatures = kReuseBins + 3;
/// The published model does not clamp features to the training range.
constexpr float kNoClamp = 1e6f;

/// A table without statistics gets an empty histogram.
void addShard(const ShardWork &shard, std::vector<float> &features) {
  for (size_t bin = 0; bin < static_cast<size_t>(kReuseBins); ++bin)
    features.push_back(
        shard.access ? static_cast<float>(shard.access->reuse[bin]) : 0.0f);
  features.push_back(static_cast<float>(shard.width));
  features.push_back(static_cast<float>(shard.pooling));
  features.push_back(static_cast<float>(shard.rows));
}

SetData publishedFeatures(const ComputeSamples &samples,
                          std::span<const size_t> indices) {
  SetData data;
  data.featureCount = kFeatures;
  for (size_t i : indices) {
    for (const ShardWork &shard : samples.samples[i].shards)
      addShard(shard, data.features);
    data.firstShard.push_back(static_cast<int64_t>(data.features.size()) /
                              kFeatures);
  }
  data.times = correctedTimes(samples, indices);
  return data;
}

} // namespace

EvaluationRow neuroshard::evaluatePublished(
    const ComputeSamples &samples, const Split &split, int64_t epochs,
    uint64_t seed, const std::function<void(int64_t, double)> &progress) {
  SetData training = publishedFeatures(samples, split.training);
  SetData validation = publishedFeatures(samples, split.validation);
  SetData heldOut = publishedFeatures(samples, split.heldOut);
  FeatureScale scale = scaleOf(training.features, kFeatures);
  for (SetData *data : {&training, &validation, &heldOut})
    standardise(data->features, scale, kNoClamp);

  ComputeNetwork network = {randomStack({kFeatures, 128, 32}, seed),
                            randomStack({32, 64, 1}, seed + 1)};
  FitOptions options;
  options.epochs = epochs;
  options.batch = 512;
  options.learningRate = 1e-3;
  options.seed = seed;
  options.progress = progress;
  fitPublishedNetwork(network, training, validation, options);
  std::vector<double> measured;
  for (const ComputeMs &time : heldOut.times)
    measured.push_back(time.total());
  return {"published architecture",
          measured.size(),
          {std::nullopt, std::nullopt,
           agreement(predictPublished(network, heldOut), measured)}};
}
