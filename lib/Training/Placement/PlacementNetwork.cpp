//===- PlacementNetwork.cpp - The placement policy under LibTorch ---------===//

#include "PlacementNetwork.h"

#include "Layers/TorchLoop.h"

#include "neuroshard/CostModel/PlacementPolicy.h"

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

/// A game's numbers as tensors.
struct GameTensors {
  explicit GameTensors(const PlacementGameData &game);

  int64_t episodes, steps, devices, pieces;
  torch::Tensor tables, pieceOfTable, order;
  /// Given pieces with their devices; each given piece once.
  torch::Tensor givenPieces, givenDevices, givenOnce;
  /// Episodes x steps; episodes x steps x devices (x features).
  torch::Tensor actions, taken, admits, features;
  /// Per step: pieces not placed.
  torch::Tensor left;
};

GameTensors::GameTensors(const PlacementGameData &game)
    : episodes(game.episodes), steps(static_cast<int64_t>(game.order.size())),
      devices(game.devices), pieces(game.pieces),
      tables(toMatrix(game.tables, kFeatureCount)),
      pieceOfTable(toIndex(game.pieceOfTable)), order(toIndex(game.order)) {
  std::vector<int64_t> piece, device, once;
  for (auto [given, where] : game.given) {
    piece.push_back(static_cast<int64_t>(given));
    device.push_back(where);
    if (once.empty() || once.back() != piece.back())
      once.push_back(piece.back());
  }
  givenPieces = toIndex(piece);
  givenDevices = toIndex(device);
  givenOnce = toIndex(once);
  actions = toIndex(game.actions).view({episodes, steps});
  taken = actions >= 0;
  std::vector<float> admitted(game.admits.begin(), game.admits.end());
  admits = toMatrix(admitted, devices).view({episodes, steps, devices}) > 0;
  features = toMatrix(game.features, kPlacementFeatureCount)
                 .view({episodes, steps, devices, kPlacementFeatureCount});
  std::vector<float> counts;
  for (size_t t = 0; t < game.order.size(); ++t)
    counts.push_back(static_cast<float>(game.order.size() - t));
  left = toMatrix(counts, 1);
}

/// Scores, episodes x steps x devices.
torch::Tensor scoresOf(const Layers &layers, const GameTensors &game) {
  torch::Tensor embedded = applyLayers(layers.table(), game.tables);
  int64_t size = embedded.size(1);
  torch::Tensor pieces = torch::zeros({game.pieces, size})
                             .index_add(0, game.pieceOfTable, embedded);
  torch::Tensor placed = pieces.index_select(0, game.order);

  // Before each step: what lies on each device, and what is still to come.
  torch::Tensor chosen =
      (game.actions.unsqueeze(-1) == torch::arange(game.devices))
          .to(torch::kFloat32);
  torch::Tensor added =
      chosen.unsqueeze(-1) * placed.view({1, game.steps, 1, size});
  torch::Tensor given =
      torch::zeros({game.devices, size})
          .index_add(0, game.givenDevices,
                     pieces.index_select(0, game.givenPieces));
  torch::Tensor sums = torch::cumsum(added, 1) - added + given;
  double share =
      static_cast<double>(game.devices) / static_cast<double>(game.pieces);
  torch::Tensor toCome = pieces.sum(0) -
                         pieces.index_select(0, game.givenOnce).sum(0) -
                         (torch::cumsum(placed, 0) - placed);

  std::vector<int64_t> shape = {game.episodes, game.steps, game.devices, size};
  auto spread = [&](const torch::Tensor &perStep) {
    return perStep.view({1, game.steps, 1, size}).expand(shape);
  };
  torch::Tensor input = torch::cat(
      {sums * share, spread(placed), spread(toCome / game.left), game.features},
      -1);
  torch::Tensor rows = input.reshape({-1, input.size(3)});
  return applyLayers(layers.head(), rows)
      .view({game.episodes, game.steps, game.devices});
}

struct Gradient {
  Tensors tensors;
  double entropy = 0;
};

Gradient gradientOf(const Layers &layers, const PlacementGameData &data,
                    double entropyWeight) {
  GameTensors game(data);
  torch::Tensor logs = torch::log_softmax(
      scoresOf(layers, game).masked_fill(game.admits.logical_not(), kRefused),
      -1);
  torch::Tensor taken = game.taken.to(torch::kFloat32);
  torch::Tensor count = taken.sum().clamp_min(1);
  torch::Tensor chosen =
      logs.gather(-1, game.actions.clamp_min(0).unsqueeze(-1)).squeeze(-1);
  torch::Tensor advantages =
      toMatrix(data.advantages, 1).view({game.episodes, 1});
  torch::Tensor reward = (advantages * chosen * taken).sum() / count;
  // Of a choice among n, in shares of log n, so that it weighs the same for
  // all numbers of devices.
  torch::Tensor most =
      torch::log(game.admits.to(torch::kFloat32).sum(-1).clamp_min(2));
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

double PlacementTrainer::step(std::span<const PlacementGameData> games,
                              const PlacementStep &options) {
  std::vector<Gradient> gradients(games.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    at::set_num_threads(1);
    for (size_t i = next++; i < games.size(); i = next++)
      gradients[i] = gradientOf(state->layers, games[i], options.entropyWeight);
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < options.threads; ++i)
      helpers.emplace_back(work);
    work();
  }

  torch::NoGradGuard noGradients;
  double entropy = 0, share = 1 / static_cast<double>(games.size());
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
                                               const PlacementGameData &game) {
  torch::NoGradGuard noGradients;
  torch::Tensor scores =
      scoresOf(Layers(stacks), GameTensors(game)).contiguous();
  const float *data = scores.const_data_ptr<float>();
  return std::vector<float>(data, data + scores.numel());
}
