//===- Passes.h - Passes of laptop-opt -------------------------*- C++ -*-===//

#ifndef NEUROSHARD_EXAMPLES_OPT_TOOL_PASSES_H
#define NEUROSHARD_EXAMPLES_OPT_TOOL_PASSES_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace laptop {

#define GEN_PASS_DECL
#include "Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"

} // namespace laptop

#endif // NEUROSHARD_EXAMPLES_OPT_TOOL_PASSES_H
