//===- Passes.h - GPU kernels as functions for the CPU ---------*- C++ -*-===//
//
// Generated from Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_EMULATION_PASSES_H
#define NEUROSHARD_CONVERSION_EMULATION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Conversion/Emulation/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Conversion/Emulation/Passes.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_EMULATION_PASSES_H
