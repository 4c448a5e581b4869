//===- LoopForms.h - Rows gathered by loops ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_LOOPFORMS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_LOOPFORMS_H

#include "Found/FoundLookup.h"

namespace neuroshard::raising {

/// Rows, sums or means by `scf.for` or `scf.forall` over the samples: each
/// iteration inserts a row, or what a loop over the ids of its bag has added
/// up. With `validInputs` offsets begin at 0.
std::optional<FoundLookup> findLoop(mlir::Operation *op, Misses &misses,
                                    bool validInputs);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_LOOPFORMS_H
