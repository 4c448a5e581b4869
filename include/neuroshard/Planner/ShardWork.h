//===- ShardWork.h - Cost features of a shard -------------------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_SHARDWORK_H
#define NEUROSHARD_PLANNER_SHARDWORK_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/FetchLoad.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace neuroshard {

class RowDemands;

/// What a cost model sees of one shard. All counts are expected values per
/// global batch, for this shard (its share of the rows; a replica: its share
/// of the batch).
struct ShardWork {
  int table = 0;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t tableRows = 0;
  int64_t tableDim = 0;
  ElementType elementType = ElementType::F32;
  ElementType outputType = ElementType::F32;
  OptimizerKind optimizer = OptimizerKind::SGD;
  /// Ids per sample, summed over the features of the table.
  double pooling = 0;
  /// Features that read the table.
  int features = 0;
  /// Ids read; result rows written (bags, or ids when unpooled); distinct rows
  /// read.
  double lookups = 0;
  double outputRows = 0;
  double uniqueRows = 0;
  /// The same for the update, which on a replica works on the whole batch, or
  /// on its own and on sums of rows.
  double updateLookups = 0;
  double updateGradientRows = 0;
  double updateUniqueRows = 0;
  /// Distinct rows that the forward / the update fetches from host memory: of
  /// a shard in tier "dram", those its cache in device memory lacks.
  double hostRows = 0;
  double hostUpdateRows = 0;
  /// Of a shard with a row cache.
  CacheUse cacheUse = {};
  FetchLoad fetch = {};
  int64_t idBytes = 8;
  bool weighted = false;
  bool rowSplit = false;
  bool columnSplit = false;
  bool replicated = false;
  /// A row-wise state kept exact over column shards.
  bool exactNorms = false;
  /// Of the table; null when unknown.
  const AccessStatistics *access = nullptr;

  /// Rows catch up before they are looked up.
  bool catchesUp = false;

  /// How many rows optimizers read and write: those that catch up twice, before
  /// the lookup and in the update.
  double steppedRows() const { return updateUniqueRows * (catchesUp ? 2 : 1); }
  double lookupValues() const { return lookups * static_cast<double>(width); }
  /// Values that the update reads and writes.
  double updateValues() const {
    return (updateGradientRows + 2 * steppedRows()) *
           static_cast<double>(width);
  }
  /// The part of them that waits for sums of rows: those, and the rows.
  double lateUpdateValues() const {
    return rowSumBytes > 0 ? 3 * updateUniqueRows * static_cast<double>(width)
                           : 0;
  }

  /// TorchRec exchanges shards of each form apart; nothing for replicas and for
  /// our engine.
  enum class Form { Whole, Columns, Rows };
  static constexpr size_t kNumForms = 3;
  std::optional<Form> exchangedForm;

  /// What the shard exchanges per step (0 for a replica's forward): elements
  /// of width per sample over the features, bytes each way.
  double dims = 0;
  double inputBytes = 0;
  /// Ids for the shard's rows that reach its group, by relay, if the shard is
  /// the only one there that reads them; 0: they come directly.
  double groupInputBytes = 0;
  double forwardBytes = 0;
  double backwardBytes = 0;
  /// The parts of backwardBytes that are sums of rows of a replicated table,
  /// those of them that are exchanged beside updates of other tables, and
  /// norms.
  double rowSumBytes = 0;
  double lateSumBytes = 0;
  double normBytes = 0;
  /// Of a copy: the parts of forwardBytes and of the gradients among
  /// backwardBytes for readers in its group; and the part of backwardBytes that
  /// are sums for other copies, of which this share is in its group.
  double insideForwardBytes = 0;
  double insideGradientBytes = 0;
  double copySumBytes = 0;
  double insideCopies = 0;
  /// Of a copy that drifts: bytes that it sends to others per average (in a
  /// mean step averageBytes x averagesPerStep), and averages in a mean step.
  /// Not in backwardBytes.
  double averageBytes = 0;
  double averagesPerStep = 0;
};

/// Distinct rows of a table that this share of the global batch reads.
double distinctRowsOf(const ShardingProblem &problem, int table,
                      const std::vector<int> &features, double batchShare);

/// Those of them among rows [rowBegin, rowEnd).
double distinctRowsOf(const ShardingProblem &problem, int table,
                      const std::vector<int> &features, double batchShare,
                      int64_t rowBegin, int64_t rowEnd);

/// Describes a shard (its device list matters only for being replicated: other
/// copies are described one by one, by describeCopies).
/// `features` are those of its table; `norms`: needsNormExchange() of all the
/// table's shards; `demands`: those of the problem, null where not more shards
/// of the table are described. The pointer `access` is into `problem`.
ShardWork describeShard(const ShardingProblem &problem, int table,
                        const std::vector<int> &features, const Shard &shard,
                        bool norms, RowDemands *demands = nullptr);

/// Describes each copy of a shard that is not replicated, by device in
/// ascending order.
std::vector<ShardWork> describeCopies(const ShardingProblem &problem, int table,
                                      const std::vector<int> &features,
                                      const Shard &shard, bool norms);

/// The same for a shard whose table is cut by columns if the shard itself is.
ShardWork describeShard(const ShardingProblem &problem, int table,
                        const std::vector<int> &features, const Shard &shard);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_SHARDWORK_H
