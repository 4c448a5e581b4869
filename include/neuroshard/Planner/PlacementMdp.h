//===- PlacementMdp.h - Placement as a Markov decision process --*- C++ -*-===//
///
/// \file
/// The Markov decision process of DreamShard (Zha et al., NeurIPS 2022, section
/// 3.2), with a cost model of ours as the estimate: pieces come one after the
/// other, costliest first; an action is the device for the next; the reward, at
/// the end, is minus the cost of the plan. Search and training play the same
/// one.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_PLACEMENTMDP_H
#define NEUROSHARD_PLANNER_PLACEMENTMDP_H

#include "neuroshard/Planner/PlacementPolicy.h"
#include "neuroshard/Planner/Search.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard {

class SearchContext;
class SearchState;
struct Unit;

class PlacementMdp {
public:
  /// `problem` and `model` live longer. A diagnosis when the problem is bad or
  /// a rule cannot be met.
  static tl::expected<PlacementMdp, Diagnosis>
  make(const ShardingProblem &problem, const CostModel &model,
       const ObjectiveOptions &objective);
  /// For searches.
  PlacementMdp(const SearchContext &context,
               const std::vector<std::shared_ptr<const Unit>> &units);
  PlacementMdp(PlacementMdp &&);
  ~PlacementMdp();

  PlacementTask task() const;
  /// Pieces without a choice and where they are.
  std::span<const std::pair<size_t, int>> given() const;
  /// The other pieces, in the order of placing.
  std::span<const size_t> order() const;

  /// To the first decision.
  void reset();
  /// The piece to place now; nothing at the end.
  std::optional<size_t> next() const;
  /// The devices as the piece to place finds them.
  std::span<const PlacementDevice> devices();
  /// Places it on a device that admits it.
  void place(int device);
  /// Decisions taken since reset().
  size_t steps() const;
  /// Of what is placed, under the objective.
  double costMs() const;
  bool withinMemory() const;
  const SearchState &state() const;

private:
  struct Game;
  explicit PlacementMdp(std::unique_ptr<Game> game);
  std::unique_ptr<Game> game;
};

/// Called before each step with the piece, the devices and the device chosen.
using PlacementObserver = std::function<void(
    size_t piece, std::span<const PlacementDevice> devices, int device)>;

/// Plays from the start to the end: the device with the highest score or, with
/// a seed, one drawn by the probabilities. False when a piece fits nowhere, or
/// the whole is above the memory.
bool playEpisode(PlacementMdp &mdp, PlacementPlayer &player,
                 std::optional<uint64_t> seed = std::nullopt,
                 const PlacementObserver &observe = {});

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_PLACEMENTMDP_H
