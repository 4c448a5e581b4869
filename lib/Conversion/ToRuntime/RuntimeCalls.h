//===- RuntimeCalls.h - Calls of nsrt_* functions --------------*- C++ -*-===//
//
// Declares the functions of Runtime/HostProgramABI.h where they are called, and
// turns tensors into the pointers they take.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_TORUNTIME_RUNTIMECALLS_H
#define NEUROSHARD_LIB_CONVERSION_TORUNTIME_RUNTIMECALLS_H

#include "neuroshard/Conversion/Jagged/LoopBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// Whether the value is a tensor that the caller of a public function gives and
/// that the function does not write.
bool isCallersTensor(mlir::Value tensor);

/// Rows of a tensor.
struct RowsPointer {
  mlir::Value first, stride; ///< `stride`: elements from row to row, an index.
};

class RuntimeBuilder : public LoopBuilder {
public:
  using LoopBuilder::LoopBuilder;

  mlir::Type pointerType();
  mlir::Value null();
  mlir::Value i64(int64_t value);
  mlir::Value i32(int64_t value);
  /// An index as i64.
  mlir::Value asI64(mlir::Value index);

  /// A buffer in memory of the device. `sizes`: of its dynamic dimensions.
  mlir::Value allocateTensor(mlir::MemRefType type, mlir::ValueRange sizes);

  /// Calls function `name`; returns its result if `result` is a type.
  mlir::Value call(llvm::StringRef name, mlir::ValueRange arguments,
                   mlir::Type result = {});

  /// First element of a buffer without an offset, or one that many elements
  /// behind it.
  mlir::Value pointerTo(mlir::Value memref, int64_t element = 0);
  /// First element of a tensor that is only read.
  mlir::Value readPointer(mlir::Value tensor);
  /// The rows of a matrix that is only read. Those of a caller's tensor may be
  /// apart: layOutArguments() follows.
  RowsPointer readRows(mlir::Value tensor);
  /// A C array of values of one type that lives until the function returns.
  mlir::Value arrayOf(mlir::ValueRange values);
};

/// Lets callers of `function` give the matrices that readRows() reads with rows
/// that are apart.
void layOutArguments(mlir::func::FuncOp function);

/// What the runtime calls an element type: 0 f32, 1 f16, 2 bf16.
int64_t getElementCode(mlir::Type element);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_TORUNTIME_RUNTIMECALLS_H
