//===- PlacementEpisodes.h - Runs and records episodes ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTEPISODES_H
#define NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTEPISODES_H

#include "PlacementNetwork.h"

#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/Planner/PlacementMdp.h"
#include "neuroshard/Training/PlacementTasks.h"

#include <functional>

namespace neuroshard {

/// Random episodes of one task; features are not standardised yet.
struct RecordedEpisodes {
  EpisodeData data;
  /// Per episode: the cost, and the share of the pieces that found a place.
  std::vector<double> costsMs;
  std::vector<double> placedShare;
};

/// Episode i draws from the seed and i. Without a policy all devices are
/// equally likely. With `scores`, appends those of every step and device.
RecordedEpisodes recordEpisodes(PlacementMdp &mdp,
                                const PlacementPolicy *policy, int episodes,
                                uint64_t seed,
                                std::vector<float> *scores = nullptr);

/// Fills in the advantages: how many standard deviations an episode's cost is
/// below the mean of all. An episode that got stuck counts as costlier than all
/// others, the more the earlier it got stuck.
void judgeEpisodes(RecordedEpisodes &recorded);

/// Runs job(i) for i below `count` on some threads.
void inParallel(int threads, size_t count,
                const std::function<void(size_t)> &job);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTEPISODES_H
