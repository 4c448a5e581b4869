//===- NormExchange.h - Norms of gradients over all columns -----*- C++ -*-===//
//
// An exact row-wise optimizer needs the norm of a whole row of gradients, also
// if several shards have its columns.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_NORMEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_STEP_NORMEXCHANGE_H

#include "UpdateInputs.h"

namespace neuroshard::runtime {

/// Replaces the norms of two-phase slots by the sums over all columns of
/// their tables, in column order.
void exchangeNorms(Device &device, std::span<SlotUpdate> slots);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_NORMEXCHANGE_H
