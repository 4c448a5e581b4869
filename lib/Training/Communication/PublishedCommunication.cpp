//===- PublishedCommunication.cpp - The paper's communication models ------===//
//
// A baseline for figures only; there are no files of such models.
//
//===----------------------------------------------------------------------===//

#include "Layers/Standardise.h"
#include "PublishedCommunicationNetwork.h"

#include "neuroshard/Training/CommunicationEvaluation.h"

#include <set>

using namespace neuroshard;

namespace {

/// The published model does not clamp features to the training range.
constexpr float kNoClamp = 1e6f;

/// The exchanges among `devices` devices in one direction.
std::vector<size_t> selectSamples(const CommunicationSamples &samples,
                                  std::span<const size_t> indices,
                                  size_t devices, Direction direction) {
  std::vector<size_t> selected;
  for (size_t i : indices)
    if (samples.samples[i].timesMs.size() == devices &&
        samples.samples[i].direction == direction)
      selected.push_back(i);
  return selected;
}

RegressionData dataOf(const CommunicationSamples &samples,
                      std::span<const size_t> indices, size_t devices) {
  RegressionData data;
  data.inputs = static_cast<int64_t>(2 * devices);
  data.outputs = static_cast<int64_t>(devices);
  auto append = [](std::vector<float> &to, const std::vector<double> &from) {
    for (double value : from)
      to.push_back(static_cast<float>(value));
  };
  for (size_t i : indices) {
    append(data.x, samples.samples[i].dims);
    append(data.x, samples.samples[i].skewsMs);
    append(data.y, samples.samples[i].timesMs);
  }
  return data;
}

/// Times per device of the held-out rows.
ExchangeTimes trainAndPredict(RegressionData training,
                              RegressionData validation, RegressionData heldOut,
                              const FitOptions &options) {
  FeatureScale scale =
      scaleOf(training.x, static_cast<size_t>(training.inputs));
  for (RegressionData *data : {&training, &validation, &heldOut})
    standardise(data->x, scale, kNoClamp);
  DenseStack layers = randomStack(
      {training.inputs, 128, 64, 32, 16, training.outputs}, options.seed);
  fitRegression(layers, training, validation, options);
  std::vector<float> values = predictRegression(layers, heldOut);
  ExchangeTimes times;
  size_t devices = static_cast<size_t>(training.outputs);
  for (size_t i = 0; i < values.size(); i += devices)
    times.emplace_back(values.begin() + static_cast<long>(i),
                       values.begin() + static_cast<long>(i + devices));
  return times;
}

} // namespace

EvaluationRow neuroshard::evaluatePublished(
    const CommunicationSamples &samples, const Split &split, int64_t epochs,
    uint64_t seed, const std::function<void(int64_t, double)> &progress) {
  std::set<size_t> counts;
  for (size_t i : split.training)
    counts.insert(samples.samples[i].timesMs.size());
  FitOptions options;
  options.epochs = epochs;
  options.batch = 512;
  options.learningRate = 1e-3;
  options.seed = seed;
  options.progress = progress;

  ExchangeTimes predicted, measured;
  for (size_t devices : counts)
    for (Direction direction : {Direction::Forward, Direction::Backward}) {
      auto select = [&](const std::vector<size_t> &indices) {
        return selectSamples(samples, indices, devices, direction);
      };
      std::vector<size_t> training = select(split.training);
      std::vector<size_t> validation = select(split.validation);
      std::vector<size_t> heldOut = select(split.heldOut);
      if (training.empty() || validation.empty() || heldOut.empty())
        continue;
      ExchangeTimes times =
          trainAndPredict(dataOf(samples, training, devices),
                          dataOf(samples, validation, devices),
                          dataOf(samples, heldOut, devices), options);
      predicted.insert(predicted.end(), times.begin(), times.end());
      for (size_t i : heldOut)
        measured.push_back(samples.samples[i].timesMs);
    }
  EvaluationRow row{"published architecture, forward and backward",
                    measured.size(),
                    {std::nullopt, std::nullopt}};
  return measured.empty() ? row : makeRow(row.subject, predicted, measured);
}
