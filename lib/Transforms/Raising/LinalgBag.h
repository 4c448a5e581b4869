//===- LinalgBag.h - Bags with offsets in one generic -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_LINALGBAG_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_LINALGBAG_H

#include "Found/FoundLookup.h"

namespace neuroshard::raising {

/// The sums of bags by a `linalg.generic` over bags, ids and columns that adds
/// the row of an id where it lies between the bag's offset and the next, as
/// torch-mlir lowers `torch.aten.embedding_bag.padding_idx`. With `validInputs`
/// offsets begin at 0. Other generics are not looked at.
std::optional<FoundLookup> findLinalgBag(mlir::Operation *op, Misses &misses,
                                         bool validInputs);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_LINALGBAG_H
