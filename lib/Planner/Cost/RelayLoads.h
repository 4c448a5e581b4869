//===- RelayLoads.h - Bytes of the hierarchical all-to-all ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_RELAYLOADS_H
#define NEUROSHARD_LIB_PLANNER_COST_RELAYLOADS_H

#include "RelayGroups.h"
#include "neuroshard/Artifact/ExchangePlan.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Model/WireType.h"
#include "neuroshard/Planner/DeviceLoad.h"

#include <optional>
#include <span>
#include <vector>

namespace neuroshard {

/// What a shard, or one copy of it, adds to its device's load by the rows it
/// has.
struct OwnedRows {
  int table = 0;
  int device = 0;
  Range rows;
  double groupInputBytes = 0;
  double normBytes = 0;
  /// The devices of all copies, in ascending order; null if there is one.
  const std::vector<int> *copies = nullptr;
};

/// Counts ids that several shards of a group read once, and norms for devices
/// of the same group as such. `shards`: all that are in the loads. Of copies
/// each gets norms of the nearest ones.
void shareInGroups(int groupSize, std::vector<OwnedRows> shards,
                   std::vector<DeviceLoad> &loads);

/// What a table's pooled results take by way of relays, and no longer directly.
/// They are the terms of a step's traffic (Artifact/StepTraffic.h), with the
/// batch spread evenly.
class TableRelay {
public:
  /// `features` and `shards`: all of the table. Expects relayGroupSize() > 0.
  TableRelay(const ShardingProblem &problem, std::span<const int> features,
             std::span<const Shard *const> shards);

  /// Nothing pooled is sent.
  bool isEmpty() const { return owners.empty(); }
  /// Of all owners, in a step.
  double directBytes() const;

  /// Sends the table's results by relay, or directly again.
  void add(std::vector<DeviceLoad> &loads, std::vector<RelayLoad> &relays,
           double sign) const;

private:
  /// Columns of a row, the parts with a scale each that it is sent in, and, of
  /// an owner, what its lookups read.
  struct Columns {
    size_t index;
    double count;
    double parts;
    double lookupValues = 0;
  };

  double bytesOf(WireFormat format, double columns, double parts) const;

  size_t groupSize;
  double rows = 0; ///< pooled results of the global batch.
  WireType wire;
  /// Of each shard's device, to relays, and of the sums of each group.
  std::vector<Columns> owners, groups;
};

/// By table; nothing for one whose results do not go by relay.
std::vector<std::optional<TableRelay>>
tableRelays(const ShardingProblem &problem, std::span<const Shard> shards);

/// Moves what goes by relay out of the loads of a plan's shards and into the
/// result; empty if nothing does.
std::vector<RelayLoad>
relayLoads(std::span<const std::optional<TableRelay>> tables,
           std::vector<DeviceLoad> &loads);
std::vector<RelayLoad> relayLoads(const ShardingProblem &problem,
                                  std::span<const Shard> shards,
                                  std::vector<DeviceLoad> &loads);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_RELAYLOADS_H
