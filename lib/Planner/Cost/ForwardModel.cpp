//===- ForwardModel.cpp - Cost of lookups without updates -----------------===//

#include "ForwardModel.h"

#include <algorithm>

using namespace neuroshard;

static void dropBackward(std::span<ComputeMs> times) {
  for (ComputeMs &time : times)
    time.backwardMs = 0;
}

void ForwardModel::computeMs(std::span<const ShardSet> sets,
                             std::span<ComputeMs> out) const {
  model.computeMs(sets, out);
  dropBackward(out);
}

std::vector<double>
ForwardModel::communicationMs(const Traffic &traffic,
                              std::span<const double> startSkewsMs,
                              Direction direction) const {
  if (direction == Direction::Backward)
    return std::vector<double>(traffic.bytesOut.size());
  return model.communicationMs(traffic, startSkewsMs, direction);
}

std::vector<double> ForwardModel::arrivalsMs(const Traffic &traffic,
                                             std::span<const double> startsMs,
                                             double evenMs,
                                             Direction direction) const {
  if (direction == Direction::Backward)
    return {startsMs.begin(), startsMs.end()};
  return model.arrivalsMs(traffic, startsMs, evenMs, direction);
}

ComputeMs ForwardModel::Embedding::head(std::span<const double> sum,
                                        int shardCount,
                                        const DeviceClass &deviceClass) const {
  return {inner->head(sum, shardCount, deviceClass).forwardMs, 0};
}

void ForwardModel::Embedding::heads(std::span<const double> sums,
                                    std::span<const int> shardCounts,
                                    const DeviceClass &deviceClass,
                                    std::span<ComputeMs> out) const {
  inner->heads(sums, shardCounts, deviceClass, out);
  dropBackward(out);
}

CostBound ForwardModel::lowerBound(std::span<const BoundTable> tables,
                                   const Topology &topology) const {
  CostBound bound = model.lowerBound(tables, topology);
  bound.maxTotalMs = bound.maxForwardMs;
  // That of a model may be in one direction or the other.
  bound.minCommunicationMs = 0;
  bound.maxBackwardMs = bound.maxBackwardCommunicationMs =
      bound.maxReceiveBackwardMs = 0;
  return bound;
}
