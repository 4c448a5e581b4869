//===- TorchForms.h - Embeddings of the torch dialect -----------*- C++ -*-===//
//
// Ops of torch-mlir's dialect in generic form: it is not registered here.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_TORCHFORMS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_TORCHFORMS_H

#include "Found/FoundLookup.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard::raising {

/// `torch.aten.embedding`, `torch.aten.embedding_bag` and its variants,
/// `torch.aten.index_select`, and `torch.aten.index.Tensor` by one tensor.
std::optional<FoundLookup> findTorchEmbedding(mlir::Operation *op,
                                              Misses &misses, bool validInputs);

/// Makes builtin tensors of arguments and results of torch's type that are
/// converted at once anyway.
void convertSignature(mlir::func::FuncOp function);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_TORCHFORMS_H
