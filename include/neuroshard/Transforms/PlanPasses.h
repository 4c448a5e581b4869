//===- PlanPasses.h - Passes that plan and price ---------------*- C++ -*-===//
//
// Generated from PlanPasses.td and, through it, from SearchOptions.def and
// ProblemOptions.def.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_PLANPASSES_H
#define NEUROSHARD_TRANSFORMS_PLANPASSES_H

#include "neuroshard/Transforms/Count.h"

#include "mlir/Pass/Pass.h"

#include <cmath>
#include <cstdint>

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Transforms/PlanPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Transforms/PlanPasses.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_PLANPASSES_H
