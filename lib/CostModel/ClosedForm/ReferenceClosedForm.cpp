//===- ReferenceClosedForm.cpp - Closed form of the 24 reference tasks ----===//

#include "neuroshard/CostModel/ReferenceClosedForm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace neuroshard;

namespace {

double shardTerm(const ShardWork &shard) {
  return shard.pooling * (static_cast<double>(shard.width) + 8) *
         (1 + 0.05 * std::log10(static_cast<double>(shard.rows)));
}

double computeCost(double sum, int shards) {
  return shards == 0 ? 0 : 0.3 + 0.004 * std::pow(sum, 0.93) + 0.02 * shards;
}

class ReferenceEmbedding final : public SumEmbedding {
public:
  int size() const override { return 1; }
  void embed(const ShardWork &shard, const DeviceClass &,
             std::span<double> out) const override {
    out[0] = shardTerm(shard);
  }
  ComputeMs head(std::span<const double> sum, int shardCount,
                 const DeviceClass &) const override {
    return {computeCost(sum[0], shardCount), 0};
  }
};

class ReferenceModel final : public CostModel {
public:
  std::string name() const override { return "reference"; }
  bool separatesBackward() const override { return false; }
  const SumEmbedding *sumEmbedding() const override { return &embedding; }
  bool monotone() const override { return true; }

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    for (size_t i = 0; i < sets.size(); ++i) {
      double sum = 0;
      for (const ShardWork *shard : sets[i].shards)
        sum += shardTerm(*shard);
      out[i] = {computeCost(sum, static_cast<int>(sets[i].shards.size())), 0};
    }
  }

  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override {
    std::vector<double> times(traffic.dims.size());
    if (direction == Direction::Input || times.empty())
      return times;
    double most = *std::max_element(traffic.dims.begin(), traffic.dims.end());
    double last = startSkewsMs.empty() ? 0
                                       : *std::max_element(startSkewsMs.begin(),
                                                           startSkewsMs.end());
    for (size_t i = 0; i < times.size(); ++i) {
      times[i] = 0.015 * most + 0.005 * traffic.dims[i];
      if (!startSkewsMs.empty())
        times[i] += 0.7 * (last - startSkewsMs[i]);
    }
    return times;
  }

  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override;

private:
  ReferenceEmbedding embedding;
};

/// The largest of the devices' sums is at least their mean, so is the largest
/// number of shards; splits only add to the sum (each shard brings its own
/// "+ 8"), except that the logarithm of the rows shrinks in row shards, so it
/// is left out where rows may be split.
CostBound ReferenceModel::lowerBound(std::span<const BoundTable> tables,
                                     const Topology &topology) const {
  CostBound bound;
  double devices = topology.deviceCount();
  double sum = 0, dims = 0;
  for (const BoundTable &table : tables) {
    const ShardWork &whole = table.whole;
    sum += table.mayRowSplit
               ? whole.pooling * (static_cast<double>(whole.width) + 8)
               : shardTerm(whole);
    if (!table.mayReplicate)
      dims += whole.dims;
  }
  int mostShards =
      static_cast<int>(std::ceil(static_cast<double>(tables.size()) / devices));
  bound.maxTotalMs =
      std::max(computeCost(sum / devices, 1), computeCost(0, mostShards));
  bound.maxForwardMs = bound.maxTotalMs;
  // The larger dimension sum enters every device's time, twice.
  bound.minCommunicationMs = 2 * 0.015 * dims / devices;
  return bound;
}

} // namespace

std::unique_ptr<CostModel> neuroshard::makeReferenceModel() {
  return std::make_unique<ReferenceModel>();
}
