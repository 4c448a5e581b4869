//===- AnnealSettings.cpp - How hot and how long annealing runs -----------===//

#include "AnnealSettings.h"

#include "Units/ComputeBatch.h"

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace neuroshard;

namespace {

/// Heats (the share of the cost by which a search lets a plan become worse) in
/// the first round.
constexpr double kHeats[] = {0.003, 0.01, 0.03, 0.1};
/// Heat in later rounds.
constexpr double kLateHeat = 0.004;
/// The heats are for boards of kHeatPieces. One of N pieces changes the cost by
/// about 1 / N, so boards of more pieces get less heat, by (N / kHeatPieces) ^
/// kHeatPower. With heat that is large compared to a piece's cost, annealing
/// only cuts tables up.
constexpr double kHeatPieces = 48;
constexpr double kHeatPower = 1.25;
/// The share of the cost by which a cut must lower it on such a board.
constexpr double kPieceWorth = 1e-3;
/// Random edits by size (tables x devices): the larger of a number that grows
/// with the square, from kCubeSize on with the cube of the size, up to
/// kMiddleSteps, and of one that grows with the root of the size.
constexpr double kStepsPerSquare = 3.4;
constexpr double kCubeSize = 210;
constexpr double kMiddleSteps = 1.5e6;
constexpr double kStepsPerRoot = 1.6e4;
constexpr double kMinSteps = 1.2e5;
constexpr double kMaxSteps = 6e6;
/// Factors on the edits for models with a small SumEmbedding, and divisor for
/// models without one.
constexpr double kFastModel = 1.5;
constexpr double kSlowModel = 20;

} // namespace

int64_t neuroshard::annealSteps(const SearchContext &context, size_t tables) {
  double size = static_cast<double>(tables) * context.deviceCount;
  double steps =
      kStepsPerSquare * size * size * std::max(1.0, size / kCubeSize);
  steps =
      std::max(std::min(steps, kMiddleSteps), kStepsPerRoot * std::sqrt(size));
  const SumEmbedding *embedding = context.model.sumEmbedding();
  if (embedding && embedding->size() <= kSmallEmbedding)
    steps *= kFastModel;
  steps = std::clamp(steps, kMinSteps, kMaxSteps);
  // Without a SumEmbedding a model reads every shard of a device at each edit.
  return static_cast<int64_t>(embedding ? steps : steps / kSlowModel);
}

AnnealSettings neuroshard::annealSettings(int64_t steps, int pieces,
                                          uint64_t round, size_t chain) {
  AnnealSettings settings;
  settings.steps = steps;
  double share = std::min(1.0, kHeatPieces / std::max(1, pieces));
  settings.firstHeat = (round ? kLateHeat : kHeats[chain % std::size(kHeats)]) *
                       std::pow(share, kHeatPower);
  settings.lastHeat *= share;
  settings.pieceWorth = kPieceWorth * share;
  return settings;
}
