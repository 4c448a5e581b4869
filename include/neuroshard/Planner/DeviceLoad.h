//===- DeviceLoad.h - Compute and bytes exchanged, by device ----*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_DEVICELOAD_H
#define NEUROSHARD_PLANNER_DEVICELOAD_H

#include "neuroshard/Planner/CostModel.h"

#include <array>
#include <span>

namespace neuroshard {

/// Per device, what the objective needs to know; the search keeps it up to
/// date piece by piece.
struct DeviceLoad {
  ComputeMs compute;
  double dims = 0;
  double inputBytes = 0;
  /// What the device's shards add to the ids that the relays of its group
  /// receive, to hand them out; 0 on all devices: ids come directly.
  double groupInputBytes = 0;
  double forwardBytes = 0;
  double backwardBytes = 0;
  /// The part of backwardBytes that are sums of rows of replicated tables
  /// (Artifact/ReplicaUpdate.h).
  double rowSumBytes = 0;
  /// The part of them that is exchanged beside updates of other tables.
  double lateSumBytes = 0;
  /// The part of backwardBytes that are norms for devices of its group.
  double insideNormBytes = 0;
  /// Of copies (ShardWork): what their readers inside the group get and send,
  /// and what copies exchange, in the group and with other groups.
  double insideForwardBytes = 0;
  double insideGradientBytes = 0;
  double insideCopySumBytes = 0;
  double outsideCopySumBytes = 0;
  /// What copies that drift send to others for their averages, in a mean step,
  /// in the group and to other groups.
  double insideAverageBytes = 0;
  double outsideAverageBytes = 0;
  /// Shards that drift, and sums over them of averages in a step and of their
  /// squares: sums, so that shards that leave the device leave no trace.
  double driftingShards = 0;
  double averageRates = 0;
  double squaredAverageRates = 0;
  /// Shards by ShardWork::exchangedForm.
  std::array<double, ShardWork::kNumForms> exchangedForms = {};
  /// Values of tables that lookups read; that updates read and write, and those
  /// of them that wait for sums of rows.
  double lookupValues = 0;
  double updateValues = 0;
  double lateUpdateValues = 0;
  FetchLoad fetch = {};

  /// Averages in a step: the mean over the shards, weighted by how often each
  /// is averaged, so near that of those averaged most often. 0 if none drifts.
  double averagesPerStep() const;
};

/// What a shard, or one copy of it, adds to its device, but for compute.
DeviceLoad loadOf(const ShardWork &shard);

/// load += sign x other, but for compute and what planLoads() adds for groups.
inline void addLoads(DeviceLoad &load, const DeviceLoad &other, double sign) {
  load.dims += sign * other.dims;
  load.inputBytes += sign * other.inputBytes;
  load.groupInputBytes += sign * other.groupInputBytes;
  load.forwardBytes += sign * other.forwardBytes;
  load.backwardBytes += sign * other.backwardBytes;
  load.rowSumBytes += sign * other.rowSumBytes;
  load.lateSumBytes += sign * other.lateSumBytes;
  load.insideForwardBytes += sign * other.insideForwardBytes;
  load.insideGradientBytes += sign * other.insideGradientBytes;
  load.insideCopySumBytes += sign * other.insideCopySumBytes;
  load.outsideCopySumBytes += sign * other.outsideCopySumBytes;
  load.insideAverageBytes += sign * other.insideAverageBytes;
  load.outsideAverageBytes += sign * other.outsideAverageBytes;
  load.driftingShards += sign * other.driftingShards;
  load.averageRates += sign * other.averageRates;
  load.squaredAverageRates += sign * other.squaredAverageRates;
  for (size_t form = 0; form < load.exchangedForms.size(); ++form)
    load.exchangedForms[form] += sign * other.exchangedForms[form];
  load.lookupValues += sign * other.lookupValues;
  load.updateValues += sign * other.updateValues;
  load.lateUpdateValues += sign * other.lateUpdateValues;
  addFetches(load.fetch, other.fetch, sign);
}

/// What a device sends by way of relays per step: as an owner to the relays of
/// its group, and as a relay to the ranks of the samples; gradients go the same
/// ways back.
struct RelayLoad {
  double forwardInside = 0;
  double forwardAcross = 0;
  double backwardInside = 0;
  double backwardAcross = 0;
  /// The part of the device's lookupValues whose results go by relay.
  double lookupValues = 0;
};

/// What devices with these loads exchange in one direction.
Traffic trafficOf(const Topology &topology, std::span<const DeviceLoad> loads,
                  Direction direction);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_DEVICELOAD_H
