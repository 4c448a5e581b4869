//===- CollectiveEffects.h - Ops that all devices run together --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_DIALECT_COLLECTIVEEFFECTS_H
#define NEUROSHARD_LIB_DIALECT_COLLECTIVEEFFECTS_H

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard::ir {

using Effects = llvm::SmallVectorImpl<
    mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>>;

/// All devices run collectives, which exchange data between them, in the same
/// order.
inline void addCollectiveEffects(Effects &effects) {
  using namespace mlir;
  effects.emplace_back(MemoryEffects::Read::get(), CollectiveResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), CollectiveResource::get());
}

} // namespace neuroshard::ir

#endif // NEUROSHARD_LIB_DIALECT_COLLECTIVEEFFECTS_H
