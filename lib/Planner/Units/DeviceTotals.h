//===- DeviceTotals.h - Memory and load of every device ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_DEVICETOTALS_H
#define NEUROSHARD_LIB_PLANNER_UNITS_DEVICETOTALS_H

#include "Separation.h"

#include <span>
#include <vector>

namespace neuroshard {

/// Loads of the devices, and sums of the embeddings of their shards, under one
/// set of statistics.
class DemandTotals {
public:
  explicit DemandTotals(const SearchContext &context);

  /// Adds (kSign 1) or takes away (-1) all but compute, which is no sum:
  /// whoever changes a device sets it.
  template <int kSign>
  void change(int device, size_t classIndex, const Demand &demand) {
    size_t d = static_cast<size_t>(device);
    addLoads(deviceLoads[d], demand.load, kSign);
    double *sum = embeddings.data() + d * size;
    const double *one = demand.embedding.data() + classIndex * size;
    for (size_t k = 0; k < size; ++k)
      sum[k] += kSign * one[k];
  }
  void setCompute(int device, const ComputeMs &compute) {
    deviceLoads[static_cast<size_t>(device)].compute = compute;
  }
  /// Leaves compute as it is.
  void clear();

  std::span<const DeviceLoad> loads() const { return deviceLoads; }
  const DeviceLoad &loadOf(int device) const {
    return deviceLoads[static_cast<size_t>(device)];
  }
  /// Empty without a SumEmbedding.
  std::span<const double> embeddingOf(int device) const {
    return std::span(embeddings)
        .subspan(static_cast<size_t>(device) * size, size);
  }

private:
  std::vector<DeviceLoad> deviceLoads;
  /// Row-major, devices x size of an embedding.
  std::vector<double> embeddings;
  size_t size = 0;
};

/// What the shards on each device add up to.
class DeviceTotals {
public:
  /// Of devices without shards. `periods`: as many of SearchContext::periods
  /// have totals of their own; the demand of all is that of the summary.
  explicit DeviceTotals(const SearchContext &context, size_t periods = 0);

  /// Shards come to a device or leave it.
  void add(int device, const ShardFacts &facts) { change<1>(device, facts); }
  void remove(int device, const ShardFacts &facts) {
    change<-1>(device, facts);
  }
  /// All shards leave; compute stays as it is.
  void clear();

  /// With what every device holds whatever the plan, but without what joining
  /// columns takes (ColumnCuts), nor what row caches share
  /// (SearchContext::peakOf()).
  const Footprint &memoryOf(int device) const {
    return devices[static_cast<size_t>(device)].footprint;
  }
  int shardsOn(int device) const {
    return devices[static_cast<size_t>(device)].shards;
  }
  /// Do hosts have room for all, in memory and on disks?
  bool withinHosts() const;
  /// Would they, of those of two devices, after these changes?
  bool hostsHold(int device, const Footprint &change, int other,
                 const Footprint &otherChange) const;
  /// Would that of a device, after this change?
  bool hostHolds(int device, const Footprint &change) const;
  /// What is left on the host of a device.
  int64_t freeHostBytes(int device) const;
  int64_t freeDiskBytes(int device) const;
  const DemandTotals &in(int period) const {
    return period == kSummary ? summary : periods[static_cast<size_t>(period)];
  }
  DemandTotals &in(int period) {
    return period == kSummary ? summary : periods[static_cast<size_t>(period)];
  }
  const Separation &separation() const { return separated; }

private:
  template <int kSign> void change(int device, const ShardFacts &facts);

  struct DeviceTotal {
    Footprint footprint;
    int shards = 0;
  };

  struct HostTotal {
    int64_t memoryBytes = 0;
    int64_t diskBytes = 0;
  };
  size_t hostOf(int device) const;
  void takeBase();
  bool holds(size_t host, int64_t memoryBytes, int64_t diskBytes) const;
  int64_t hostBytesAdded(int device, const Footprint &change) const;

  const SearchContext *context;
  std::vector<DeviceTotal> devices;
  std::vector<HostTotal> hosts;
  DemandTotals summary;
  std::vector<DemandTotals> periods;
  Separation separated;
};

/// Which tables are cut by columns, and the memory that joining their columns
/// takes on every device.
class ColumnCuts {
public:
  explicit ColumnCuts(const SearchContext &context);

  void add(const ShardFacts &facts) { change(facts, 1); }
  void remove(const ShardFacts &facts) { change(facts, -1); }
  void clear();

  int64_t permuteBytes() const { return bytes; }
  /// The same were there `change` more column-cut shards of a table.
  int64_t permuteBytesAfter(int table, int change) const;

private:
  void change(const ShardFacts &facts, int sign);
  int64_t permuteBytesOf(int table) const;

  const SearchContext *context;
  /// Column-cut shards, by table.
  std::vector<int> shards;
  int64_t bytes = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_DEVICETOTALS_H
