//===- Passes.h - Passes on the way to native code -------------*- C++ -*-===//
//
// Generated from Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_PASSES_H
#define NEUROSHARD_CONVERSION_NATIVE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Conversion/Native/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Conversion/Native/Passes.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_NATIVE_PASSES_H
