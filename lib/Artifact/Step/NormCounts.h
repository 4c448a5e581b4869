//===- NormCounts.h - Norms that owners of columns exchange -----*- C++ -*-===//
//
// For exact row-wise states and trust ratios of tables whose columns lie on
// several devices.
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
using PairReceiver = std::function<void(size_t, size_t, int64_t)>;

/// Calls `add` for the norms that owners of columns of the same rows send each
/// other.
void countNorms(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const StepLoad &load, Engine engine, const PairReceiver &add);

/// How many rows of a shard have norms in a step on GPUs: the most there can
/// be, since nobody waits for the number of distinct rows; of tables with
/// copies, which wait, as many as there are.
class MostNorms {
public:
  MostNorms(const ExchangePlan &plan,
            const std::vector<ExchangeLayout> &layouts, const StepLoad &load);

  int64_t of(const ShardSpec &shard) const;

private:
  std::vector<bool> hasCopies; ///< per table.
  const StepLoad &load;
  /// Ids of all devices for some rows of a table.
  std::map<std::pair<int32_t, Range>, int64_t> ids;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_NORMCOUNTS_H
