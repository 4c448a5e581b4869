//===- PlacementNetwork.cpp - Policy network in LibTorch ------------------===//

#include "PlacementNetwork.h"

#include "Layers/TrainingLoop.h"

#include "neuroshard/CostModel/NeuralPolicy.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace neuroshard;

namespace {

/// Gradients longer than this are shortened to it.
constexpr double kMostGradient = 1.0;
/// Instead of minus infinity, whose product with 0 is not 0.
constexpr double kRefused = -1e9;

using Tensors = std::vector<torch::Tensor>;

struct Layers {
  Tensors all;
  size_t tableCount;

  explicit Layers(const PlacementStacks &stacks)
      : all(toTensors(stacks.table)), tableCount(all.size()) {
    for (torch::Tensor &tensor : toTensors(stacks.head))
      all.push_back(tensor);
  }
  std::span<const torch::Tensor> table() const {
    return std::span(all).first(tableCount);
  }
  std::span<const torch::Tensor> head() const {
    return std::span(all).subspan(tableCount);
  }
};

/// Episodes of a task as tensors.
struct EpisodeTensors {
  explicit EpisodeTensors(const EpisodeData &data);

  int64_t episodes, steps, devices, pieces;
  torch::Tensor tables, pieceOfTable, order;
  /// Given pieces with their devices; each given piece once.
  torch::Tensor givenPieces, givenDevices, givenOnce;
  /// Episodes x steps; episodes x steps x devices (x features).
  torch::Tensor actions, taken, admits, features;
  /// Per step: pieces not placed.
  torch::Tensor left;
};

EpisodeTensors::EpisodeTensors(const EpisodeData &data)
    : episodes(data.episodes), steps(static_cast<int64_t>(data.order.size())),
      devices(data.devices), pieces(data.pieces),
      tables(toMatrix(data.tables, kFeatureCount)),
      pieceOfTable(toIndex(data.pieceOfTable)), order(toIndex(data.order)) {
  std::vector<int64_t> piece, device, once;
  for (auto [given, where] : data.given) {
    piece.push_back(static_cast<int64_t>(given));
    device.push_back(where);
    if (once.empty() || once.back() != piece.back())
      once.push_back(piece.back());
  }
  givenPieces = toIndex(piece);
  givenDevices = toIndex(device);
  givenOnce = toIndex(once);
  actions = toIndex(data.actions).view({episodes, steps});
  taken = actions >= 0;
  std::vector<float> admitted(data.admits.begin(), data.admits.end());
  admits = toMatrix(admitted, devices).view({episodes, steps, devices}) > 0;
  features = toMatrix(data.features, kPlacementFeatureCount)
                 .view({episodes, steps, devices, kPlacementFeatureCount});
  std::vector<float> counts;
  for (size_t t = 0; t < data.order.size(); ++t)
    counts.push_back(static_cast<float>(data.order.size() - t));
  left = toMatrix(counts, 1);
}

/// Scores, episodes x steps x devices.
torch::Tensor scoresOf(const Layers &layers, const EpisodeTensors &tensors) {
  torch::Tensor embedded = applyLayers(layers.table(), tensors.tables);
  int64_t size = embedded.size(1);
  torch::Tensor pieces = torch::zeros({tensors.pieces, size})
                             .index_add(0, tensors.pieceOfTable, embedded);
  torch::Tensor placed = pieces.index_select(0, tensors.order);

  // Before each step: what lies on each device, and what is still to come.
  torch::Tensor chosen =
      (tensors.actions.unsqueeze(-1) == torch::arange(tensors.devices))
          .to(torch::kFloat32);
  torch::Tensor added =
      chosen.unsqueeze(-1) * placed.view({1, tensors.steps, 1, size});
  torch::Tensor given =
      torch::zeros({tensors.devices, size})
          .index_add(0, tensors.givenDevices,
                     pieces.index_select(0, tensors.givenPieces));
  torch::Tensor sums = torch::cumsum(added, 1) - added + given;
  double share = static_cast<double>(tensors.devices) /
                 static_cast<double>(tensors.pieces);
  torch::Tensor toCome = pieces.sum(0) -
                         pieces.index_select(0, tensors.givenOnce).sum(0) -
                         (torch::cumsum(placed, 0) - placed);

  std::vector<int64_t> shape = {tensors.episodes, tensors.steps,
                                tensors.devices, size};
  auto spread = [&](const torch::Tensor &perStep) {
    return perStep.view({1, tensors.steps, 1, size}).expand(shape);
  };
  torch::Tensor input =
      torch::cat({sums * share, spread(placed), spread(toCome / tensors.left),
                  tensors.features},
                 -1);
  torch::Tensor rows = input.reshape({-1, input.size(3)});
  return applyLayers(layers.head(), rows)
      .view({tensors.episodes, tensors.steps, tensors.devices});
}

struct Gradient {
  Tensors tensors;
  double entropy = 0;
};

Gradient gradientOf(const Layers &layers, const EpisodeData &data,
                    double entropyWeight) {
  EpisodeTensors tensors(data);
  torch::Tensor logs = torch::log_softmax(
      scoresOf(layers, tensors)
          .masked_fill(tensors.admits.logical_not(), kRefused),
      -1);
  torch::Tensor taken = tensors.taken.to(torch::kFloat32);
  torch::Tensor count = taken.sum().clamp_min(1);
  torch::Tensor chosen =
      logs.gather(-1, tensors.actions.clamp_min(0).unsqueeze(-1)).squeeze(-1);
  torch::Tensor advantages =
      toMatrix(data.advantages, 1).view({tensors.episodes, 1});
  torch::Tensor reward = (advantages * chosen * taken).sum() / count;
  // The entropy of a choice among n is divided by log n, so that it weighs the
  // same for all numbers of devices.
  torch::Tensor most =
      torch::log(tensors.admits.to(torch::kFloat32).sum(-1).clamp_min(2));
  torch::Tensor entropy = -(torch::exp(logs) * logs).sum(-1) / most;
  torch::Tensor meanEntropy = (entropy * taken).sum() / count;
  torch::Tensor loss = -(reward + entropyWeight * meanEntropy);
  Gradient gradient;
  gradient.tensors = torch::autograd::grad({loss}, layers.all);
  gradient.entropy = meanEntropy.item<double>();
  return gradient;
}

void shorten(Tensors &gradient) {
  double squares = 0;
  for (const torch::Tensor &tensor : gradient)
    squares += tensor.square().sum().item<double>();
  double length = std::sqrt(squares);
  if (length > kMostGradient)
    for (torch::Tensor &tensor : gradient)
      tensor.mul_(kMostGradient / length);
}

} // namespace

struct PlacementTrainer::State {
  explicit State(const PlacementStacks &start)
      : layers(start), optimizer(layers.all) {}

  Layers layers;
  torch::optim::Adam optimizer;
};

PlacementTrainer::PlacementTrainer(const PlacementStacks &start)
    : state(std::make_unique<State>(start)) {}

PlacementTrainer::~PlacementTrainer() = default;

double PlacementTrainer::step(std::span<const EpisodeData> tasks,
                              const PlacementStep &options) {
  std::vector<Gradient> gradients(tasks.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    at::set_num_threads(1);
    for (size_t i = next++; i < tasks.size(); i = next++)
      gradients[i] = gradientOf(state->layers, tasks[i], options.entropyWeight);
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < options.threads; ++i)
      helpers.emplace_back(work);
    work();
  }

  torch::NoGradGuard noGradients;
  double entropy = 0, share = 1 / static_cast<double>(tasks.size());
  Tensors mean;
  for (const torch::Tensor &tensor : state->layers.all)
    mean.push_back(torch::zeros_like(tensor));
  for (const Gradient &gradient : gradients) {
    entropy += share * gradient.entropy;
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i].add_(gradient.tensors[i], share);
  }
  shorten(mean);
  for (size_t i = 0; i < mean.size(); ++i)
    state->layers.all[i].mutable_grad() = mean[i];
  for (auto &group : state->optimizer.param_groups())
    group.options().set_lr(options.learningRate);
  state->optimizer.step();
  return entropy;
}

PlacementStacks PlacementTrainer::stacks() const {
  return {toDense(state->layers.table()), toDense(state->layers.head())};
}

std::vector<float> neuroshard::placementScores(const PlacementStacks &stacks,
                                               const EpisodeData &episodes) {
  torch::NoGradGuard noGradients;
  torch::Tensor scores =
      scoresOf(Layers(stacks), EpisodeTensors(episodes)).contiguous();
  const float *data = scores.const_data_ptr<float>();
  return std::vector<float>(data, data + scores.numel());
}
