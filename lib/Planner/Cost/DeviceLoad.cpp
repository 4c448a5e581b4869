//===- DeviceLoad.cpp - Compute and bytes exchanged, by device ------------===//

#include "neuroshard/Planner/DeviceLoad.h"

#include <algorithm>

using namespace neuroshard;

DeviceLoad neuroshard::loadOf(const ShardWork &shard) {
  DeviceLoad load;
  load.dims = shard.dims;
  load.inputBytes = shard.inputBytes;
  load.groupInputBytes = shard.groupInputBytes;
  load.forwardBytes = shard.forwardBytes;
  load.backwardBytes = shard.backwardBytes;
  load.rowSumBytes = shard.rowSumBytes;
  load.lateSumBytes = shard.lateSumBytes;
  load.insideForwardBytes = shard.insideForwardBytes;
  load.insideGradientBytes = shard.insideGradientBytes;
  load.insideCopySumBytes = shard.copySumBytes * shard.insideCopies;
  load.outsideCopySumBytes = shard.copySumBytes - load.insideCopySumBytes;
  double averageBytes = shard.averageBytes * shard.averagesPerStep;
  load.insideAverageBytes = averageBytes * shard.insideCopies;
  load.outsideAverageBytes = averageBytes - load.insideAverageBytes;
  load.driftingShards = shard.averagesPerStep > 0 ? 1 : 0;
  load.averageRates = shard.averagesPerStep;
  load.squaredAverageRates = shard.averagesPerStep * shard.averagesPerStep;
  if (shard.exchangedForm)
    load.exchangedForms[static_cast<size_t>(*shard.exchangedForm)] = 1;
  load.lookupValues = shard.lookupValues();
  load.updateValues = shard.updateValues();
  load.lateUpdateValues = shard.lateUpdateValues();
  load.fetch = shard.fetch;
  return load;
}

double DeviceLoad::averagesPerStep() const {
  // What rounding leaves of shards that were added and removed.
  constexpr double kNone = 1e-9;
  if (driftingShards < kNone || averageRates <= 0)
    return 0;
  return std::max(averageRates / driftingShards,
                  squaredAverageRates / averageRates);
}

Traffic neuroshard::trafficOf(const Topology &topology,
                              std::span<const DeviceLoad> loads,
                              Direction direction) {
  Traffic traffic;
  traffic.topology = &topology;
  size_t count = loads.size();
  traffic.dims.resize(count);
  traffic.bytesOut.resize(count);
  traffic.bytesIn.resize(count);
  double total = 0;
  for (size_t i = 0; i < count; ++i) {
    const DeviceLoad &load = loads[i];
    bool input = direction == Direction::Input;
    traffic.dims[i] = input ? 0 : load.dims;
    double bytes = input                             ? load.inputBytes
                   : direction == Direction::Forward ? load.forwardBytes
                                                     : load.backwardBytes;
    traffic.bytesOut[i] = bytes;
    total += bytes;
  }
  // What every owner sends, each part of the batch gets an equal share of.
  std::fill(traffic.bytesIn.begin(), traffic.bytesIn.end(),
            total / static_cast<double>(count));
  // Ids and gradients flow the other way: from the batch to the owners.
  if (direction != Direction::Forward)
    std::swap(traffic.bytesOut, traffic.bytesIn);
  return traffic;
}
