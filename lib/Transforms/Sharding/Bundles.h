//===- Bundles.h - Change what pending and context values hold -*- C++ -*-===//
//
// For passes that change which values start gives to wait, and wait to update.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_SHARDING_BUNDLES_H
#define NEUROSHARD_LIB_TRANSFORMS_SHARDING_BUNDLES_H

#include "neuroshard/Transforms/StepFunctions.h"

namespace neuroshard {

/// Lets `op` (a suspend or save) bundle `values`, and gives every value of the
/// old bundle type in the module, and every function that takes or returns
/// one, the new type. The caller replaces the unbundling op.
template <typename OpT> void rebundle(OpT op, mlir::ValueRange values);

/// Creates a resume or restore with the results that the type of its bundle
/// lists now. The caller erases the old op, which is not valid any more.
template <typename OpT> OpT recreateUnbundle(OpT op);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_SHARDING_BUNDLES_H
