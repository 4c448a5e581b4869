//===- Passes.h - Passes from the logical to the partitioned level *- C++ -*-=//
//
// Generated from Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_PASSES_H
#define NEUROSHARD_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Transforms/Passes.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_PASSES_H
