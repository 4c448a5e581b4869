//===- LowerSteps.h - Steps of a device as calls ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_TORUNTIME_LOWERSTEPS_H
#define NEUROSHARD_LIB_CONVERSION_TORUNTIME_LOWERSTEPS_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Transforms/DialectConversion.h"

namespace neuroshard {

/// Number of each exchange: its place among the exchanges of the module.
using ExchangeNumbers = llvm::DenseMap<mlir::StringAttr, int64_t>;

/// Lowers the step ops of level 4. `numbers` must outlive the patterns.
void populateStepPatterns(const mlir::TypeConverter &converter,
                          const ExchangeNumbers &numbers,
                          mlir::RewritePatternSet &patterns);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_TORUNTIME_LOWERSTEPS_H
