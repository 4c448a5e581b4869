//===- FormPrices.h - Prices of other forms of tables -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_FORMPRICES_H
#define NEUROSHARD_LIB_PLANNER_FORMS_FORMPRICES_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <vector>

namespace neuroshard {

/// The shards of one table.
using TableShards = std::vector<Shard>;

/// Prices whole plans that have other shards of tables than a given one, up to
/// a number of prices.
class FormPrices {
public:
  /// `work`: prices x (shards + devices); `fewest`: prices at least.
  FormPrices(const SearchContext &context, const ShardingPlan &plan,
             double work, double fewest);

  /// The shards of the given plan, by table.
  const std::vector<TableShards> &given() const { return tables; }

  /// The given plan with these shards instead.
  ShardingPlan planOf(const std::vector<TableShards> &of) const;

  /// The cost of that plan; infinite if it breaks a rule or needs too much
  /// memory. `computeMs` gets how long each device computes.
  double costMs(const std::vector<TableShards> &of,
                std::vector<double> &computeMs);

  /// Whether no more should be asked for.
  bool isDone() const { return costsLeft <= 0 || context.deadlinePassed(); }

private:
  const SearchContext &context;
  const ShardingPlan &original;
  std::vector<TableShards> tables;
  double costsLeft;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_FORMPRICES_H
