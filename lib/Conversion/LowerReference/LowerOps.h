//===- LowerOps.h - Lookups and updates as plain loops ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_LOWERREFERENCE_LOWEROPS_H
#define NEUROSHARD_LIB_CONVERSION_LOWERREFERENCE_LOWEROPS_H

#include "TableMemory.h"

#include "neuroshard/Conversion/Jagged/Jagged.h"

namespace neuroshard {

/// Lowers lookup. `tables` must outlive the patterns, here and below.
void populateLookupPatterns(const mlir::TypeConverter &converter,
                            const TableInfos &tables,
                            mlir::RewritePatternSet &patterns);

/// Lowers update and weights_gradient.
void populateUpdatePatterns(const mlir::TypeConverter &converter,
                            const TableInfos &tables,
                            mlir::RewritePatternSet &patterns);

/// An element of a table or tensor as f32.
mlir::Value loadF32(LoopBuilder &b, mlir::Value from, mlir::ValueRange indices);

/// Rounds an f32 to the element type of `memref` and stores it.
void storeRounded(LoopBuilder &b, mlir::Value value, mlir::Value memref,
                  mlir::ValueRange indices);

/// The seed (i32) of stochastic rounding in a step (i64).
mlir::Value seedOfStep(LoopBuilder &b, mlir::Value step);

/// A value of f16 or bf16, as f32, below or above an f32 weight, the nearer the
/// likelier.
mlir::Value roundStochastically(LoopBuilder &b, mlir::Value weight,
                                mlir::Value gradient, mlir::Value seed,
                                mlir::Type element);

/// The ids of one lookup.
class LookupIds {
public:
  LookupIds(LoopBuilder &b, ir::LookupAttr lookup, const JaggedTensors &jagged);

  ir::LookupAttr lookup;
  JaggedTensors jagged;
  mlir::Value batch;   ///< samples.
  mlir::Value firstId; ///< position of the feature's first id.
  mlir::Value endId;   ///< position after its last id.

  mlir::Value begin(LoopBuilder &b, mlir::Value bag) const;
  mlir::Value end(LoopBuilder &b, mlir::Value bag) const;
  /// True (i1) for an id that takes part in its bag and gets a gradient.
  mlir::Value counts(LoopBuilder &b, mlir::Value id) const;
  /// Number of ids of a bag that take part, as f32.
  mlir::Value bagCount(LoopBuilder &b, mlir::Value bag) const;
  /// Calls body(bag, position, id) for every id in order, padding left out.
  void forEachId(LoopBuilder &b,
                 llvm::function_ref<void(mlir::Value bag, mlir::Value position,
                                         mlir::Value id)>
                     body) const;

private:
  int64_t feature;
};

/// One step of a table's optimizer for one row. `gradients` is an f32 memref
/// of which row `position` is the row's summed gradient; `learningRate` is
/// f32, `step` i64.
class OptimizerStep {
public:
  OptimizerStep(LoopBuilder &b, const TableInfo &table,
                const TableMemory &memory, mlir::Value learningRate,
                mlir::Value step);

  void apply(LoopBuilder &b, mlir::Value row, mlir::Value gradients,
             mlir::Value position) const;

private:
  bool hasTrustRatio() const;
  void addMomentFactors(LoopBuilder &b, mlir::Value step);
  void applyWithTrust(LoopBuilder &b, mlir::Value row, mlir::Value gradients,
                      mlir::Value position) const;
  void applyCounted(LoopBuilder &b, mlir::Value row, mlir::Value gradients,
                    mlir::Value position) const;
  mlir::Value meanOfSquares(LoopBuilder &b, mlir::Value row,
                            mlir::Value gradients, mlir::Value position) const;
  mlir::Value addToSum(LoopBuilder &b, mlir::Value states, mlir::Value row,
                       mlir::Value value) const;
  void stepMoments(LoopBuilder &b, mlir::Value row, mlir::Value gradients,
                   mlir::Value position) const;
  mlir::Value trustDirection(LoopBuilder &b, mlir::Value row,
                             mlir::Value column, mlir::Value gradients,
                             mlir::Value position) const;
  mlir::Value trustRatio(LoopBuilder &b, mlir::Value row, mlir::Value gradients,
                         mlir::Value position) const;
  mlir::Value clampedGradient(LoopBuilder &b, mlir::Value column,
                              mlir::Value gradients,
                              mlir::Value position) const;
  void storeWeight(LoopBuilder &b, mlir::Value weight, mlir::Value gradient,
                   mlir::ValueRange at) const;
  mlir::Value correctedRate(LoopBuilder &b, mlir::Value learningRate,
                            mlir::Value step) const;
  mlir::Value keptShare(LoopBuilder &b, mlir::Value learningRate) const;
  mlir::Value gradientOf(LoopBuilder &b, mlir::Value row, mlir::Value column,
                         mlir::Value gradients, mlir::Value position) const;
  mlir::Value stepOf(LoopBuilder &b, mlir::Value row, mlir::Value column,
                     mlir::Value gradient) const;
  mlir::Value weightOfFTRL(LoopBuilder &b, mlir::ValueRange at,
                           mlir::Value gradient) const;
  mlir::Value nextWeight(LoopBuilder &b, mlir::Value row, mlir::Value column,
                         mlir::Value gradient, mlir::Value rowFactor) const;
  mlir::Value movingAverage(LoopBuilder &b, mlir::Value state,
                            mlir::ValueRange indices, double beta,
                            mlir::Value value) const;
  mlir::Value divideByRoot(LoopBuilder &b, mlir::Value numerator,
                           mlir::Value square) const;
  mlir::Value rowwiseFactor(LoopBuilder &b, mlir::Value row,
                            mlir::Value gradients, mlir::Value position) const;
  mlir::Value rowwiseDirection(LoopBuilder &b, mlir::Value row,
                               mlir::Value column, mlir::Value gradient) const;

  const TableInfo &table;
  const TableMemory &memory;
  Optimizer optimizer;
  mlir::Value stepSize;
  mlir::Value kept;          ///< factor of the weights; null: 1.
  mlir::Value seed;          ///< of stochastic rounding; null: to nearest.
  mlir::Value first, second; ///< factors of moments, of trust ratios alone.
  mlir::Value number;        ///< of the step, f32; with counters alone.
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_LOWERREFERENCE_LOWEROPS_H
