//===- Passes.h - Passes of the kernel library -----------------*- C++ -*-===//
//
// Generated from Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_PASSES_H
#define NEUROSHARD_CONVERSION_KERNELS_PASSES_H

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Conversion/Kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Conversion/Kernels/Passes.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_PASSES_H
