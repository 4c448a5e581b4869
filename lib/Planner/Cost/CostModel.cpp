//===- CostModel.cpp - Defaults of the cost model interface ---------------===//

#include "neuroshard/Planner/CostModel.h"

#include <algorithm>

using namespace neuroshard;

static std::vector<double> sumOf(std::vector<double> bytes,
                                 const std::vector<double> &inside,
                                 const std::vector<double> &across) {
  for (size_t i = 0; i < inside.size(); ++i)
    bytes[i] += inside[i] + across[i];
  return bytes;
}

std::vector<double> Traffic::allBytesOut() const {
  return sumOf(bytesOut, insideOut, acrossOut);
}

std::vector<double> Traffic::allBytesIn() const {
  return sumOf(bytesIn, insideIn, acrossIn);
}

SumEmbedding::~SumEmbedding() = default;
CostModel::~CostModel() = default;

void SumEmbedding::heads(std::span<const double> sums,
                         std::span<const int> shardCounts,
                         const DeviceClass &deviceClass,
                         std::span<ComputeMs> out) const {
  size_t width = static_cast<size_t>(size());
  for (size_t i = 0; i < shardCounts.size(); ++i)
    out[i] = head(sums.subspan(i * width, width), shardCounts[i], deviceClass);
}

std::vector<std::string> CostModel::remarks(std::span<const ShardSet>,
                                            const Topology &) const {
  return {};
}

std::vector<double> CostModel::arrivalsMs(const Traffic &,
                                          std::span<const double> startsMs,
                                          double evenMs, Direction) const {
  double last = *std::max_element(startsMs.begin(), startsMs.end());
  return std::vector<double>(startsMs.size(), last + evenMs);
}

CostBound CostModel::lowerBound(std::span<const BoundTable>,
                                const Topology &) const {
  return {};
}
