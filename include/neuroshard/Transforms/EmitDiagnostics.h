//===- EmitDiagnostics.h - Problems as diagnostics of MLIR ------*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_EMITDIAGNOSTICS_H
#define NEUROSHARD_TRANSFORMS_EMITDIAGNOSTICS_H

#include "neuroshard/Model/Diagnostics.h"

#include "mlir/IR/Diagnostics.h"

namespace neuroshard {

/// Emits one error with a note for each further problem. Returns failure.
mlir::LogicalResult emitDiagnostics(mlir::Location loc,
                                    const Diagnostics &diagnostics);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_EMITDIAGNOSTICS_H
