//===- Jagged.h - Jagged values as tensors ---------------------*- C++ -*-===//
//
// How both conversions out of the dialect (reference and runtime) represent
// jagged values and bundles: a jagged value is two tensors, ids and offsets, or
// three, with weights; a pending step or a context is what it bundles.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_JAGGED_JAGGED_H
#define NEUROSHARD_CONVERSION_JAGGED_JAGGED_H

#include "neuroshard/Conversion/Jagged/LoopBuilder.h"
#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Transforms/DialectConversion.h"

namespace neuroshard {

/// The tensors of a jagged value. offsets is tensor<?xi64> with
/// features x batch + 1 entries, feature-major, starting at 0.
struct JaggedTensors {
  JaggedTensors(ir::JaggedType type, mlir::ValueRange tensors);

  ir::JaggedType type;
  mlir::Value ids;
  mlir::Value offsets;
  mlir::Value weights; ///< null if the type is not weighted.

  /// Samples.
  mlir::Value batchSize(LoopBuilder &b) const;
  /// offsets[feature * batch + bag]: first id of a bag.
  mlir::Value firstId(LoopBuilder &b, int64_t feature, mlir::Value batch,
                      mlir::Value bag) const;
  /// Ids of one feature.
  mlir::Value numIds(LoopBuilder &b, int64_t feature) const;
};

/// Converts jagged, pending and context types; all others stay.
void addJaggedTypeConversions(mlir::TypeConverter &converter);

/// Lowers pack, from_keyed, unpack, batch_size, num_ids, suspend, resume,
/// save and restore.
void populateJaggedPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// Converts the types of functions, calls, returns, branches and scf ops, and
/// declares legal what has legal types only. `deviceAttr` (optional) marks
/// arguments that were a `!neuroshard.device`.
void populateStructuralPatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns,
                                mlir::ConversionTarget &target,
                                llvm::StringRef deviceAttr = {});

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_JAGGED_JAGGED_H
