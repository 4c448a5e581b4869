//===- Bytecode.h - Versions of the bytecode of the dialect -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_DIALECT_BYTECODE_H
#define NEUROSHARD_LIB_DIALECT_BYTECODE_H

#include "mlir/Bytecode/BytecodeImplementation.h"

namespace neuroshard::ir {

/// Writes kBytecodeVersion and reads it and all older ones.
struct BytecodeInterface : mlir::BytecodeDialectInterface {
  explicit BytecodeInterface(mlir::Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}
  void writeVersion(mlir::DialectBytecodeWriter &writer) const final;
  std::unique_ptr<mlir::DialectVersion>
  readVersion(mlir::DialectBytecodeReader &reader) const final;
  mlir::LogicalResult
  upgradeFromVersion(mlir::Operation *topLevelOp,
                     const mlir::DialectVersion &version) const final;
};

} // namespace neuroshard::ir

#endif // NEUROSHARD_LIB_DIALECT_BYTECODE_H
