//===- PlacementMdp.h - Placement as a Markov decision process --*- C++ -*-===//
///
/// \file
/// The Markov decision process of DreamShard (Zha et al., NeurIPS 2022, section
/// 3.2), with one of our cost models for the rewards. Pieces come one after the
/// other, costliest first; an action chooses the device of the next piece; the
/// reward, at the end, is minus the cost of the plan. Search and training use
/// this class.
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
  /// `problem` and `model` must outlive the result. An error when the problem
  /// is bad or a rule cannot be met.
  static tl::expected<PlacementMdp, PlanningError>
  make(const ShardingProblem &problem, const CostModel &model,
       const ObjectiveOptions &objective);
  /// For searches.
  PlacementMdp(const SearchContext &context,
               const std::vector<std::shared_ptr<const Unit>> &units);
  PlacementMdp(PlacementMdp &&);
  ~PlacementMdp();

  PlacementTask task() const;
  /// Pieces without a choice and their devices.
  std::span<const std::pair<size_t, int>> given() const;
  /// The other pieces, in the order of placing.
  std::span<const size_t> order() const;

  /// Goes back to the first decision.
  void reset();
  /// The piece to place now; nothing at the end.
  std::optional<size_t> next() const;
  /// The devices as they are for the piece to place.
  std::span<const PlacementDevice> devices();
  /// Places it on a device that admits it.
  void place(int device);
  /// Decisions taken since reset().
  size_t steps() const;
  /// Objective of the pieces placed so far.
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

/// Plays an episode from the start: chooses the device with the highest score
/// or, with a seed, samples one by the probabilities. False when a piece fits
/// nowhere or the placement is above the memory.
bool playEpisode(PlacementMdp &mdp, PlacementPlayer &player,
                 std::optional<uint64_t> seed = std::nullopt,
                 const PlacementObserver &observe = {});

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_PLACEMENTMDP_H
