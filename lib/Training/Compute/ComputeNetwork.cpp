//===- ComputeNetwork.cpp - Compute network in LibTorch -------------------===//

#include "ComputeNetwork.h"

#include "Layers/Loss.h"
#include "Layers/TrainingLoop.h"

#include <ATen/Parallel.h>
#include <cmath>

using namespace neuroshard;

namespace {

/// Shard sets as tensors.
struct SetTensors {
  torch::Tensor features;
  std::span<const int64_t> firstShard;
  /// Sets x (forward, backward, both), ms; undefined where not needed.
  torch::Tensor times;

  explicit SetTensors(const SetData &data)
      : features(toMatrix(data.features, data.featureCount)),
        firstShard(data.firstShard) {
    if (data.times.empty())
      return;
    std::vector<float> values;
    for (const ComputeMs &time : data.times)
      for (double ms : {time.forwardMs, time.backwardMs, time.total()})
        values.push_back(static_cast<float>(ms));
    times = toMatrix(values, 3);
  }

  int64_t size() const { return static_cast<int64_t>(firstShard.size()) - 1; }
};

/// Rows of the shards of some sets, and to which of these sets each belongs.
struct Selection {
  torch::Tensor rows, owners;
  int64_t sets;

  Selection(const SetTensors &data, std::span<const int64_t> indices)
      : sets(static_cast<int64_t>(indices.size())) {
    std::vector<int64_t> row, owner;
    for (size_t i = 0; i < indices.size(); ++i) {
      size_t set = static_cast<size_t>(indices[i]);
      for (int64_t r = data.firstShard[set]; r < data.firstShard[set + 1];
           ++r) {
        row.push_back(r);
        owner.push_back(static_cast<int64_t>(i));
      }
    }
    rows = toIndex(row);
    owners = toIndex(owner);
  }
};

Selection allSets(const SetTensors &data) {
  std::vector<int64_t> all(static_cast<size_t>(data.size()));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<int64_t>(i);
  return {data, all};
}

/// The tensors of a network being trained or used: table layers, head layers.
struct Parameters {
  std::vector<torch::Tensor> all;
  size_t tableCount;

  explicit Parameters(const ComputeNetwork &network)
      : all(toTensors(network.table)), tableCount(all.size()) {
    for (torch::Tensor &tensor : toTensors(network.head))
      all.push_back(tensor);
  }
  std::span<const torch::Tensor> table() const {
    return std::span(all).first(tableCount);
  }
  std::span<const torch::Tensor> head() const {
    return std::span(all).subspan(tableCount);
  }
  void store(ComputeNetwork &network) const {
    network.table = toDense(table());
    network.head = toDense(head());
  }
};

torch::Tensor sumOver(const Selection &selection, const torch::Tensor &shards) {
  return torch::zeros({selection.sets, shards.size(1)}, shards.options())
      .index_add(0, selection.owners, shards);
}

/// Logarithms of (forward, backward), sets x 2, from the sums of embeddings.
torch::Tensor logTimes(const Parameters &parameters,
                       const torch::Tensor &sums) {
  torch::Tensor logs = torch::log(sums + kLogFloor).to(torch::kFloat32);
  return logs.narrow(1, 0, 2) + applyLayers(parameters.head(), logs);
}

torch::Tensor embed(const Parameters &parameters, const torch::Tensor &rows) {
  return torch::exp(
      applyLayers(parameters.table(), rows).clamp_max(std::log(kMaxShardMs)));
}

torch::Tensor logTimes(const Parameters &parameters, const SetTensors &data,
                       const Selection &selection) {
  torch::Tensor rows = data.features.index_select(0, selection.rows);
  return logTimes(parameters, sumOver(selection, embed(parameters, rows)));
}

/// The inference's form: sums of rounded numbers in double.
torch::Tensor exactLogTimes(const Parameters &parameters,
                            const SetTensors &data) {
  Selection selection = allSets(data);
  torch::Tensor shards = embed(parameters, data.features).to(torch::kFloat64);
  shards = torch::round(shards / kShardMsUnit) * kShardMsUnit;
  return logTimes(parameters, sumOver(selection, shards));
}

/// Adds the logarithm of forward + backward as a third column.
torch::Tensor withTotal(const torch::Tensor &logs) {
  return torch::cat({logs, torch::logsumexp(logs, 1, true)}, 1);
}

torch::Tensor relativeLoss(const torch::Tensor &logs,
                           const torch::Tensor &times) {
  return logarithmicLoss(withTotal(logs), torch::log(times));
}

/// Trains with a loss of (prediction input, times).
template <typename Loss>
double fit(ComputeNetwork &network, const SetData &training,
           const SetData &validation, const FitOptions &options, Loss loss) {
  at::set_num_threads(1);
  Parameters parameters(network);
  SetTensors train(training), held(validation);
  Selection heldSelection = allSets(held);
  double best = optimise(
      parameters.all, training.size(), options,
      [&](std::span<const int64_t> indices) {
        return loss(parameters, train, Selection(train, indices),
                    train.times.index_select(0, toIndex(indices)));
      },
      [&] {
        return loss(parameters, held, heldSelection, held.times)
            .template item<double>();
      });
  parameters.store(network);
  return best;
}

/// The published network's output: total ms per set.
torch::Tensor publishedTimes(const Parameters &parameters,
                             const SetTensors &data,
                             const Selection &selection) {
  torch::Tensor rows = data.features.index_select(0, selection.rows);
  torch::Tensor sums =
      sumOver(selection, applyLayers(parameters.table(), rows));
  return applyLayers(parameters.head(), sums).squeeze(1);
}

} // namespace

ComputeNetwork neuroshard::networkOf(const NeuralComputeMember &member) {
  return {{member.table.begin(), member.table.end()},
          {member.head.begin(), member.head.end()}};
}

NeuralComputeMember neuroshard::memberOf(ComputeNetwork network) {
  NeuralComputeMember member;
  std::move(network.table.begin(), network.table.end(), member.table.begin());
  std::move(network.head.begin(), network.head.end(), member.head.begin());
  return member;
}

ComputeNetwork neuroshard::newComputeNetwork(uint64_t seed) {
  ComputeNetwork network = {
      randomStack({kFeatureCount, kTableHidden0, kTableHidden1, kSumWidth},
                  seed),
      randomStack({kSumWidth, kHeadHidden, 2}, seed + 1)};
  for (float &weight : network.head.back().weight)
    weight *= 0.1f;
  for (float &weight : network.table.back().weight)
    weight *= 0.3f;
  for (float &bias : network.table.back().bias)
    bias = -1.0f;
  return network;
}

double neuroshard::fitComputeNetwork(ComputeNetwork &network,
                                     const SetData &training,
                                     const SetData &validation,
                                     const FitOptions &options) {
  return fit(network, training, validation, options,
             [](const Parameters &parameters, const SetTensors &data,
                const Selection &selection, const torch::Tensor &times) {
               return relativeLoss(logTimes(parameters, data, selection),
                                   times);
             });
}

void neuroshard::centerComputeNetwork(ComputeNetwork &network,
                                      const SetData &data) {
  torch::NoGradGuard noGradients;
  at::set_num_threads(1);
  Parameters parameters(network);
  SetTensors tensors(data);
  torch::Tensor wanted = torch::log(tensors.times.narrow(1, 0, 2));
  torch::Tensor off = wanted - logTimes(parameters, tensors, allSets(tensors));
  parameters.all.back().add_(std::get<0>(off.median(0)));
  parameters.store(network);
}

std::vector<ComputeMs> neuroshard::predictSets(const ComputeNetwork &network,
                                               const SetData &data) {
  torch::NoGradGuard noGradients;
  at::set_num_threads(1);
  torch::Tensor times =
      torch::exp(exactLogTimes(Parameters(network), SetTensors(data)));
  auto values = times.accessor<float, 2>();
  std::vector<ComputeMs> out;
  for (int64_t i = 0; i < times.size(0); ++i)
    out.push_back({values[i][0], values[i][1]});
  return out;
}

double neuroshard::fitPublishedNetwork(ComputeNetwork &network,
                                       const SetData &training,
                                       const SetData &validation,
                                       const FitOptions &options) {
  FitOptions loop = options;
  loop.constantRate = true;
  return fit(network, training, validation, loop,
             [](const Parameters &parameters, const SetTensors &data,
                const Selection &selection, const torch::Tensor &times) {
               return torch::mse_loss(
                   publishedTimes(parameters, data, selection),
                   times.select(1, 2));
             });
}

std::vector<double> neuroshard::predictPublished(const ComputeNetwork &network,
                                                 const SetData &data) {
  torch::NoGradGuard noGradients;
  at::set_num_threads(1);
  SetTensors tensors(data);
  torch::Tensor times =
      publishedTimes(Parameters(network), tensors, allSets(tensors))
          .contiguous();
  const float *values = times.const_data_ptr<float>();
  return {values, values + times.numel()};
}
