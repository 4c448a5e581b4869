//===- PlacementPolicy.h - Learned choice of a device -----------*- C++ -*-===//
///
/// \file
/// The policy of `algorithm=dreamshard`. The planner knows policies only by
/// this interface; the trained one is in
/// neuroshard/CostModel/NeuralPolicy.h.
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

/// Shards that go to one device together: a table, or a co-located set.
struct PlacementPiece {
  std::vector<const ShardWork *> works;
  /// Forward + backward compute, alone on a device of the first class.
  double aloneMs = 0;
  /// Bytes exchanged per step, forward and backward.
  double exchangeBytes = 0;
  /// Memory that it adds to a device at most, as a share of the mean device's.
  double memoryShare = 0;
};

/// The state of a device before a piece is placed.
struct PlacementDevice {
  /// Do rules and memory admit the piece?
  bool admits = false;
  /// Predictions for the device without the piece; its compute with the piece.
  ComputeMs compute, computeAfter;
  double communicationMs = 0;
  double exchangeBytes = 0;
  /// Share of its memory in use, without and with the piece.
  double memoryShare = 0;
  double memoryShareAfter = 0;
};

/// The task of a policy: place these pieces on so many devices.
struct PlacementTask {
  /// Must outlive the player.
  std::span<const PlacementPiece> pieces;
  int deviceCount = 0;
  ObjectiveKind objective = ObjectiveKind::Step;
};

/// A policy's state in one task. For one thread at a time.
class PlacementPlayer {
public:
  virtual ~PlacementPlayer();
  /// Starts an episode: nothing is placed.
  virtual void reset() = 0;
  /// Tells the policy that a piece was placed, by it or by others.
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
