//===- JaggedArguments.h - Ids as jagged arguments --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_JAGGEDARGUMENTS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_JAGGEDARGUMENTS_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard::raising {

/// Makes one jagged argument of the ids, offsets and weights of each of `packs`
/// that are arguments of `function` and that nothing else reads but for their
/// size. Each pack is given with whether its offsets are of bags of one size.
void makeJaggedArguments(mlir::func::FuncOp function,
                         llvm::ArrayRef<std::pair<ir::PackOp, bool>> packs);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_JAGGEDARGUMENTS_H
