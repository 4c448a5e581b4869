//===- Bundles.h - Change what pending and context values hold -*- C++ -*-===//
//
// Helpers for passes that give a step other values to carry from start to wait
// and from wait to update.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_SHARDING_BUNDLES_H
#define NEUROSHARD_LIB_TRANSFORMS_SHARDING_BUNDLES_H

#include "neuroshard/Transforms/StepFunctions.h"

namespace neuroshard {

/// Lets `op` (a suspend or save) bundle `values`, and gives every value of the
/// old bundle type in the module, and every function that takes or returns
/// one, the new type. The unbundling op has to be replaced by the caller.
template <typename OpT> void rebundle(OpT op, mlir::ValueRange values);

/// Replaces a resume or restore by one with the results that its bundle's type
/// says. Returns them; the old op is left to the caller, without operand type
/// check until it is erased.
template <typename OpT> OpT recreateUnbundle(OpT op);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_SHARDING_BUNDLES_H
