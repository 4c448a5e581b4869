//===- RowDemands.h - Row demand of each table, found once ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_ROWDEMANDS_H
#define NEUROSHARD_LIB_PLANNER_COST_ROWDEMANDS_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CacheHits.h"

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace neuroshard {

/// Of the ids of all of a table's features in a global batch.
RowDemand rowDemandOf(const ShardingProblem &problem, int table,
                      const std::vector<int> &features);

/// The row demand of tables, made when it is first asked for: fitting one to a
/// reuse histogram takes longer than all else of a shard's description.
class RowDemands {
public:
  /// `features`: featuresOfTables(). Both must outlive it.
  RowDemands(const ShardingProblem &problem,
             const std::vector<std::vector<int>> &features)
      : problem(problem), features(features), demands(problem.tables.size()) {}

  /// May be called from any thread.
  const RowDemand &of(int table);

private:
  struct Once {
    std::once_flag flag;
    std::optional<RowDemand> demand;
  };

  const ShardingProblem &problem;
  const std::vector<std::vector<int>> &features;
  std::deque<Once> demands;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_ROWDEMANDS_H
