//===- OtherPlacement.h - Cost of a plan with a table elsewhere -*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_OTHERPLACEMENT_H
#define NEUROSHARD_PLANNER_OTHERPLACEMENT_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/Objective.h"

#include <memory>
#include <optional>
#include <string>

namespace neuroshard {

/// A plan with one table, and those co-located with it, placed otherwise.
struct OtherPlacement {
  /// The cost of that plan; nothing if there is none.
  std::optional<double> costMs;
  /// The device that holds the table in that plan; -1 if there is none.
  int device = -1;
  /// "whole, a step would take 1.234 ms (+2.1 %), on device 3", or why there is
  /// no such plan.
  std::string text;
};

/// Prices a plan with tables placed otherwise, one at a time.
class OtherPlacements {
public:
  /// `plan` must pass verify(); all other arguments must outlive this.
  OtherPlacements(const ShardingProblem &problem, const ShardingPlan &plan,
                  const CostModel &model, const ObjectiveOptions &objective);
  ~OtherPlacements();

  /// The cost of the plan as it is, as evaluate() gives it.
  double costMs() const;

  /// The table whole on the device where a step is then shortest, and all else
  /// as it is; a table that is whole now on another device. Of many devices
  /// those with the least compute are tried; with snapshots their summary
  /// chooses the device, and the cost is the mean over them.
  OtherPlacement whole(int table) const;

private:
  class Pricer;
  std::unique_ptr<const Pricer> pricer;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_OTHERPLACEMENT_H
