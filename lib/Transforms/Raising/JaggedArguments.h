//===- JaggedArguments.h - Ids as jagged arguments --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_JAGGEDARGUMENTS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_JAGGEDARGUMENTS_H

#include "EmitLookup.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard::raising {

/// Makes one jagged argument of the ids, offsets and weights of each of `packs`
/// that are arguments of `function` and that nothing else reads but for their
/// size. Samples may then have any number of
/// ids: packs whose lookups need another number stay, with a remark.
void makeJaggedArguments(mlir::func::FuncOp function,
                         llvm::ArrayRef<MadePack> packs);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_JAGGEDARGUMENTS_H
