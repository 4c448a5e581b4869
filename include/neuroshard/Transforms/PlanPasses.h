//===- PlanPasses.h - Passes that plan and price ---------------*- C++ -*-===//
//
// Generated from PlanPasses.td and, through it, from SearchOptions.def and
// ProblemOptions.def.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_PLANPASSES_H
#define NEUROSHARD_TRANSFORMS_PLANPASSES_H

#include "mlir/Pass/Pass.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace neuroshard {

/// A count among the options that is not given.
inline constexpr int64_t kCountNotGiven = std::numeric_limits<int64_t>::min();

#define GEN_PASS_DECL
#include "neuroshard/Transforms/PlanPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Transforms/PlanPasses.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_PLANPASSES_H
