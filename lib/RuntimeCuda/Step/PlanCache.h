//===- PlanCache.h - Plans of earlier steps --------------------*- C++ -*-===//
//
// Plans are cached by their parts, so that a step with the pointers and sizes
// of an earlier one uploads nothing. A captured graph keeps a plan of its own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_PLANCACHE_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_PLANCACHE_H

#include "StepPlan.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// The cached plans of a device.
class PlanCache {
public:
  explicit PlanCache(const Gpu &gpu) : gpu(gpu) {}

  /// The plan of these parts, or null. Ignores captured plans.
  StepPlan *find(std::span<const Part> parts, StepKind kind);

  /// Returns a plan to fill with these parts: a new one, or the least recently
  /// used of those with the same lookups.
  StepPlan &take(std::span<const Part> parts, bool capturing);

  /// Drops a plan that was not filled to its end.
  void drop(StepPlan &plan);

  const std::vector<std::unique_ptr<StepPlan>> &all() const { return plans; }

private:
  StepPlan *leastRecent(std::span<const Part> parts, size_t kept);

  const Gpu &gpu;
  std::vector<std::unique_ptr<StepPlan>> plans;
  uint64_t uses = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_PLANCACHE_H
