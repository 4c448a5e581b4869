//===- NormCounts.h - Norms that owners of columns exchange -----*- C++ -*-===//
//
// For exact row-wise states of tables whose columns lie on several devices.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_NORMCOUNTS_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_NORMCOUNTS_H

#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace neuroshard {

/// Takes sender, receiver and bytes.
using NormReceiver = std::function<void(size_t, size_t, int64_t)>;

/// Calls `add` for the norms that owners of columns of the same rows send each
/// other.
void countNorms(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const StepLoad &load, Engine engine, const NormReceiver &add);

/// How many norms an owner of columns keeps in a step, if its engine does not
/// wait for the number of distinct rows.
class MostNorms {
public:
  MostNorms(const ExchangePlan &plan,
            const std::vector<ExchangeLayout> &layouts, const StepLoad &load);

  int64_t of(const ShardSpec &shard) const;

private:
  /// Ids of all devices for some rows of a table.
  std::map<std::pair<int32_t, Range>, int64_t> ids;
};

/// Shards of each table that exchange norms with others: those of some columns.
std::vector<std::vector<const ShardSpec *>>
shardsWithNorms(const ExchangePlan &plan);

/// Ranges of rows are equal or have nothing in common. The engine on GPUs then
/// sends as many norms as there may be, without waiting for the device.
bool haveEqualRows(const std::vector<const ShardSpec *> &shards);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_NORMCOUNTS_H
