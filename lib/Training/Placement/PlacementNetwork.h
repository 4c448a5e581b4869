//===- PlacementNetwork.h - Policy network in LibTorch ----------*- C++ -*-===//
//
// The same network as the plain C++ inference of policies, and the REINFORCE
// step on it. Free of LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTNETWORK_H
#define NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTNETWORK_H

#include "Layers/Dense.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace neuroshard {

/// Episodes of one task, as the policy saw them. T: pieces to place.
struct EpisodeData {
  int64_t devices = 0;
  int64_t pieces = 0;
  /// Standardised; a row per table, which belongs to a piece.
  std::vector<float> tables;
  std::vector<int64_t> pieceOfTable;
  /// Placed before the first step.
  std::vector<std::pair<size_t, int>> given;
  /// The T pieces in the order of placing.
  std::vector<int64_t> order;
  int64_t episodes = 0;
  /// Episodes x T; -1 after the end of an episode that got stuck.
  std::vector<int64_t> actions;
  /// Episodes x T x devices.
  std::vector<uint8_t> admits;
  /// Episodes x T x devices x kPlacementFeatureCount, standardised.
  std::vector<float> features;
  /// Per episode: how much better than the others of the task it was.
  std::vector<float> advantages;
};

struct PlacementStacks {
  DenseStack table, head;
};

/// The scores of all devices in all steps, like `admits`.
std::vector<float> placementScores(const PlacementStacks &stacks,
                                   const EpisodeData &data);

struct PlacementStep {
  double learningRate = 0;
  /// Weight of the mean entropy of a choice.
  double entropyWeight = 0;
  int threads = 1;
};

/// REINFORCE (Williams, 1992) with Adam.
class PlacementTrainer {
public:
  explicit PlacementTrainer(const PlacementStacks &start);
  ~PlacementTrainer();

  /// One step along the gradient of the mean over the tasks of
  ///   mean over steps of advantage x log probability + weight x entropy.
  /// Returns the mean entropy of a choice, relative to a uniform choice. The
  /// number of threads does not change the result.
  double step(std::span<const EpisodeData> tasks, const PlacementStep &options);
  PlacementStacks stacks() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTNETWORK_H
