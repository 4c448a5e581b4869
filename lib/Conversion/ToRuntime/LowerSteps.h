//===- LowerSteps.h - Steps of a device as calls ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_TORUNTIME_LOWERSTEPS_H
#define NEUROSHARD_LIB_CONVERSION_TORUNTIME_LOWERSTEPS_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Transforms/DialectConversion.h"

namespace neuroshard {

/// What step ops need of an exchange, whose op is gone when they are lowered.
struct LoweredExchange {
  int64_t number; ///< its place among the exchanges of the module.
  mlir::ArrayAttr results;
};
using LoweredExchanges = llvm::DenseMap<mlir::StringAttr, LoweredExchange>;

/// Lowers the step ops of level 4. `exchanges` must outlive the patterns.
void populateStepPatterns(const mlir::TypeConverter &converter,
                          const LoweredExchanges &exchanges,
                          mlir::RewritePatternSet &patterns);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_TORUNTIME_LOWERSTEPS_H
