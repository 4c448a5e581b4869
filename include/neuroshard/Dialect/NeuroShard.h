//===- NeuroShard.h - The neuroshard dialect -------------------*- C++ -*-===//
//
// Everything a user of the dialect includes: dialect, types, attributes, ops.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_NEUROSHARD_H
#define NEUROSHARD_DIALECT_NEUROSHARD_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "neuroshard/Dialect/DefinedAttributes.h"
#include "neuroshard/Dialect/ModelEnums.h"
#include "neuroshard/Model/Drift.h"

#include <optional>

#include "neuroshard/Dialect/NeuroShardDialect.h.inc"
#include "neuroshard/Dialect/NeuroShardEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "neuroshard/Dialect/NeuroShardAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "neuroshard/Dialect/NeuroShardTypes.h.inc"

#define GET_OP_CLASSES
#include "neuroshard/Dialect/NeuroShardOps.h.inc"

namespace neuroshard::ir {

/// What collectives write: keeps them in one order on all devices.
struct CollectiveResource
    : mlir::SideEffects::Resource::Base<CollectiveResource> {
  llvm::StringRef getName() final { return "neuroshard.Collective"; }
};

/// Weights and optimizer state; effects carry the symbol of the table.
struct TableResource : mlir::SideEffects::Resource::Base<TableResource> {
  llvm::StringRef getName() final { return "neuroshard.Table"; }
};

} // namespace neuroshard::ir

#endif // NEUROSHARD_DIALECT_NEUROSHARD_H
