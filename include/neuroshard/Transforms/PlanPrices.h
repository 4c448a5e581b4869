//===- PlanPrices.h - Predicted costs of a plan as remarks ------*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_PLANPRICES_H
#define NEUROSHARD_TRANSFORMS_PLANPRICES_H

#include "neuroshard/Dialect/NeuroShard.h"

#include <string>
#include <vector>

namespace neuroshard {

/// A sentence on the plan, a shard or a table.
struct Price {
  mlir::Operation *op = nullptr;
  std::string text;
};

/// Prices a plan, its shards and its tables, in this order; see the pass
/// neuroshard-price. `costModel` is a name for makeCostModel(). An error is
/// emitted unless the module is of the planned level and the plan passes
/// verify(). Expects a module that MLIR has verified.
mlir::FailureOr<std::vector<Price>> pricePlan(ir::PlanOp plan,
                                              llvm::StringRef costModel);

/// Emits each price as a remark on its op.
void emitPrices(llvm::ArrayRef<Price> prices);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_PLANPRICES_H
