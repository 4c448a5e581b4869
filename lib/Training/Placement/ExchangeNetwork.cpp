//===- ExchangeNetwork.cpp - Times of exchanges, learnt alone -------------===//

#include "ExchangeNetwork.h"

#include "Layers/Loss.h"
#include "Layers/TrainingLoop.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

constexpr int kHidden0 = 32, kHidden1 = 16;

struct RowTensors {
  explicit RowTensors(const ExchangeRows &rows)
      : features(toMatrix(rows.features, kExchangeRowSize)),
        logMs(toMatrix(rows.logMs, 1)) {}

  torch::Tensor features, logMs;
};

} // namespace

void neuroshard::featurizeDevices(const Traffic &traffic, Direction direction,
                                  std::vector<float> &rows) {
  CommunicationFeatures features =
      featurizeExchange(traffic, traffic.topology->levels, {}, direction);
  double most = 0, sum = 0;
  for (double dims : traffic.dims) {
    most = std::max(most, dims);
    sum += dims;
  }
  double count = static_cast<double>(traffic.dims.size());
  for (size_t d = 0; d < traffic.dims.size(); ++d) {
    auto begin = features.device.begin() +
                 static_cast<std::ptrdiff_t>(d * kDeviceFeatureCount);
    rows.insert(rows.end(), begin, begin + kDeviceFeatureCount);
    rows.insert(rows.end(), features.exchange.begin(), features.exchange.end());
    for (double dims : {traffic.dims[d], most, sum / count})
      rows.push_back(static_cast<float>(std::log1p(dims)));
  }
}

DenseStack neuroshard::newExchangeNetwork(uint64_t seed) {
  return randomStack({kExchangeRowSize, kHidden0, kHidden1, 1}, seed);
}

void neuroshard::fitExchangeNetwork(DenseStack &network,
                                    const ExchangeRows &training,
                                    const ExchangeRows &validation,
                                    const FitOptions &options) {
  at::set_num_threads(1);
  std::vector<torch::Tensor> parameters = toTensors(network);
  RowTensors train(training), held(validation);
  optimise(
      parameters, training.size(), options,
      [&](std::span<const int64_t> indices) {
        torch::Tensor chosen = toIndex(indices);
        return logarithmicLoss(
            applyLayers(parameters, train.features.index_select(0, chosen)),
            train.logMs.index_select(0, chosen));
      },
      [&] {
        return logarithmicLoss(applyLayers(parameters, held.features),
                               held.logMs)
            .item<double>();
      });
  network = toDense(parameters);
}

double neuroshard::predictExchange(const DenseStack &network,
                                   std::span<const float> row) {
  // The largest logarithm that is taken for a time.
  constexpr float kMost = 20;
  std::vector<float> values(row.begin(), row.end());
  for (size_t l = 0; l < network.size(); ++l) {
    const DenseLayer &layer = network[l];
    std::vector<float> next(layer.bias);
    for (size_t o = 0; o < next.size(); ++o) {
      const float *weights = layer.weight.data() + o * values.size();
      for (size_t i = 0; i < values.size(); ++i)
        next[o] += weights[i] * values[i];
      if (l + 1 < network.size())
        next[o] = std::max(next[o], 0.0f);
    }
    values = std::move(next);
  }
  return std::exp(std::clamp(values[0], -kMost, kMost));
}
