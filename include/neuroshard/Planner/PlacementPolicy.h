//===- PlacementPolicy.h - Learned choice of a device -----------*- C++ -*-===//
///
/// \file
/// What `algorithm=dreamshard` asks. The planner knows policies only by this
/// interface; the trained one is in neuroshard/CostModel/PlacementPolicy.h.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_PLACEMENTPOLICY_H
#define NEUROSHARD_PLANNER_PLACEMENTPOLICY_H

#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Objective.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// What goes to one device together: a table, or a set of co-located ones.
struct PlacementPiece {
  std::vector<const ShardWork *> works;
  /// Its forward + backward, alone on a device of the first class.
  double aloneMs = 0;
  /// What it exchanges per step, forward and backward.
  double exchangeBytes = 0;
  /// What it adds to a device at most, as a share of the mean device's memory.
  double memoryShare = 0;
};

/// A device at the moment when a piece is to be placed.
struct PlacementDevice {
  /// May it go there, by rules and memory?
  bool admits = false;
  /// Predictions for what lies there, and for its compute with the piece.
  ComputeMs compute, computeAfter;
  double communicationMs = 0;
  double exchangeBytes = 0;
  /// Share of its memory in use, without and with the piece.
  double memoryShare = 0;
  double memoryShareAfter = 0;
};

/// What a policy is asked to do.
struct PlacementTask {
  /// Lives longer than the player.
  std::span<const PlacementPiece> pieces;
  int deviceCount = 0;
  ObjectiveKind objective = ObjectiveKind::Step;
};

/// A policy at work on one task. Not for several threads at once.
class PlacementPlayer {
public:
  virtual ~PlacementPlayer();
  /// Nothing is placed.
  virtual void reset() = 0;
  /// A piece was placed, by the policy or not.
  virtual void placed(size_t piece, int device) = 0;
  /// A score for each device to get the piece; softmax over those that admit it
  /// gives the probabilities.
  virtual void scores(size_t piece, std::span<const PlacementDevice> devices,
                      std::span<float> out) = 0;
};

/// Immutable and safe to use from several threads.
class PlacementPolicy {
public:
  virtual ~PlacementPolicy();
  virtual std::string name() const = 0;
  virtual std::unique_ptr<PlacementPlayer>
  play(const PlacementTask &task) const = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_PLACEMENTPOLICY_H
