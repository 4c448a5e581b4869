//===- LoopBuilder.h - Plain loops over buffers ----------------*- C++ -*-===//
//
// For the lowerings of jagged values and of the reference program: index
// arithmetic, loops, buffers that become tensors.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_JAGGED_LOOPBUILDER_H
#define NEUROSHARD_CONVERSION_JAGGED_LOOPBUILDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace neuroshard {

/// An op builder at one location with short names for scalar code. All
/// integers that are not elements of buffers are of type index.
class LoopBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  mlir::Value index(int64_t value);
  mlir::Value f32(double value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);

  /// Size of the first dimension of a tensor or memref.
  mlir::Value size(mlir::Value shaped);
  /// Element of a tensor or memref; an integer element becomes an index.
  mlir::Value load(mlir::Value from, mlir::ValueRange indices);
  /// Stores `value` as an element of `memref`; an index becomes an integer.
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange indices);

  /// A buffer of elements x (columns, if any).
  mlir::Value allocate(mlir::Type element, mlir::Value rows,
                       std::optional<int64_t> columns = std::nullopt);
  /// The tensor of `type` in a buffer that nothing else uses from here on.
  mlir::Value toTensor(mlir::Value buffer, mlir::RankedTensorType type);

  /// for (i = begin; i < end; ++i) body(i).
  void loop(mlir::Value begin, mlir::Value end,
            llvm::function_ref<void(mlir::Value)> body);
  /// The same with a value that each iteration replaces; returns the last.
  mlir::Value
  fold(mlir::Value begin, mlir::Value end, mlir::Value initial,
       llvm::function_ref<mlir::Value(mlir::Value i, mlir::Value)> body);
  /// if (condition) body().
  void when(mlir::Value condition, llvm::function_ref<void()> body);
};

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_JAGGED_LOOPBUILDER_H
