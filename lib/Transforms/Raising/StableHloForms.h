//===- StableHloForms.h - Rows gathered by StableHLO ------------*- C++ -*-===//
//
// Ops of StableHLO in generic form: it is not registered here.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_STABLEHLOFORMS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_STABLEHLOFORMS_H

#include "Found/FoundLookup.h"

namespace neuroshard::raising {

/// `stablehlo.gather` and `stablehlo.dynamic_gather` of rows. Their ids are
/// moved into the table as StableHLO says, unless `validInputs`.
std::optional<FoundLookup>
findStableHloGather(mlir::Operation *op, Misses &misses, bool validInputs);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_STABLEHLOFORMS_H
