//===- RowBuilder.h - Rows as lists of vectors -----------------*- C++ -*-===//
//
// For kernel bodies: rows cut into vectors, loads and stores of rows with their
// conversion to and from f32, element-wise arithmetic on rows, sums over the
// columns of a row, and prefetches.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_ROWBUILDER_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_ROWBUILDER_H

#include "RowVectorTypes.h"

#include "neuroshard/Conversion/Kernels/RowVectors.h"
#include "neuroshard/Model/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace neuroshard {

class RowBuilder {
public:
  /// `bytes`: what rows of i8 stand for.
  RowBuilder(mlir::ImplicitLocOpBuilder &b, int64_t dim, ElementType bytes,
             const RowVectors &shape);

  const RowVectors &getShape() const { return shape; }

  /// True if the whole row is one block.
  bool isOneBlock() const { return dim <= shape.block; }

  /// Emits the row block by block: blocks of shape.block columns (in a loop
  /// if there are several), then one with the rest. `carried` values are
  /// passed from block to block, the last ones are returned.
  llvm::SmallVector<mlir::Value> forEachBlock(
      mlir::ValueRange carried,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(const ColumnBlock &,
                                                        mlir::ValueRange)>
          emit);
  void forEachBlock(llvm::function_ref<void(const ColumnBlock &)> emit);

  mlir::Value index(int64_t value);
  mlir::Value constant(double value);
  Row zeros(const ColumnBlock &block);

  /// Reads a block of a row; f16, bf16 and quantized values are extended to
  /// f32.
  Row read(const RowAddress &address, const ColumnBlock &block);
  /// The two steps of read: load as stored, then convert to f32.
  Row readStored(const RowAddress &address, const ColumnBlock &block);
  Row extend(const Row &stored);
  /// Writes a block of a row; to f16 and bf16 it is rounded to nearest even.
  void write(const Row &row, const RowAddress &address,
             const ColumnBlock &block);
  /// The row as it would be read back after it was written as `element`.
  Row rounded(const Row &row, mlir::Type element);
  /// Prefetches the cache lines of a block of a row, if the address has a row.
  void prefetch(const RowAddress &address, const ColumnBlock &block,
                bool forWrite);

  Row add(const Row &lhs, const Row &rhs);
  Row subtract(const Row &lhs, const Row &rhs);
  Row multiply(const Row &lhs, const Row &rhs);
  Row divide(const Row &lhs, const Row &rhs);
  Row squareRoot(const Row &row);
  /// Values between -bound and bound; a NaN stays one.
  Row clamp(const Row &row, mlir::Value bound);
  Row scale(mlir::Value factor, const Row &row);
  Row addScalar(const Row &row, mlir::Value addend);
  Row divideByScalar(const Row &row, mlir::Value divisor);

  /// Emits the row block by block and adds up the values that `emit` returns
  /// for the columns of each: lane l of a chunk collects the columns l,
  /// l + chunk, ... in this order; the lanes are then added as a reassociable
  /// vector.reduction, and after them narrower vectors, one by one.
  mlir::Value sumColumns(llvm::function_ref<Row(const ColumnBlock &)> emit);
  /// The sums of `count` rows at once, each as above.
  llvm::SmallVector<mlir::Value> sumColumns(
      int64_t count,
      llvm::function_ref<llvm::SmallVector<Row>(const ColumnBlock &)> emit);

  /// Stores one f32 as a vector of one element, so that the store can be
  /// distributed like every other.
  void writeScalar(mlir::Value value, mlir::Value memref, mlir::Value position);

private:
  ColumnBlock makeBlock(mlir::Value begin, int64_t width);
  llvm::SmallVector<mlir::Value>
  indices(const RowAddress &address, const ColumnBlock &block, int64_t offset);
  /// Null for a slice that fills its vector.
  mlir::Value makeMask(const Slice &slice);
  Row broadcast(mlir::Value scalar, const Row &like);
  mlir::Value sumLanes(llvm::ArrayRef<mlir::Value> parts);
  void prefetchBytes(const RowAddress &address, const ColumnBlock &block,
                     bool forWrite);

  mlir::ImplicitLocOpBuilder &b;
  int64_t dim;
  ElementType bytes;
  RowVectors shape;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_ROWBUILDER_H
