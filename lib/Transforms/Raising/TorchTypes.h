//===- TorchTypes.h - Tensors of torch-mlir, by their text ------*- C++ -*-===//
//
// The torch dialect is not registered here: its types are opaque.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_TORCHTYPES_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_TORCHTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace neuroshard::raising {

/// The builtin type of `!torch.vtensor<[2,?],f32>`; null if the type is none,
/// or its sizes or elements are not known. Signed and unsigned integers become
/// signless ones, as torch-mlir's own conversion does.
mlir::RankedTensorType builtinOfTorch(mlir::Type type);

/// Whether the op is torch-mlir's conversion from or to a builtin tensor, or
/// forgets or adds sizes of a tensor.
bool isTorchCast(mlir::Operation *op);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_TORCHTYPES_H
