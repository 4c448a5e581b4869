//===- Passes.h - From GPU modules to NVVM ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_PASSES_H
#define NEUROSHARD_CONVERSION_GPU_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Conversion/GPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Conversion/GPU/Passes.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_PASSES_H
