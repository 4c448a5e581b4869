//===- DescribeFunctions.h - Signatures of host functions -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_MANIFEST_DESCRIBEFUNCTIONS_H
#define NEUROSHARD_LIB_CONVERSION_MANIFEST_DESCRIBEFUNCTIONS_H

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// Arguments and results of all public functions with a body.
mlir::FailureOr<std::vector<FunctionSpec>>
describeFunctions(mlir::ModuleOp module);

/// A type as manifests name it, such as "f32".
std::string nameOfType(mlir::Type type);

/// Names of the features of a jagged type.
std::vector<std::string> namesOfFeatures(ir::JaggedType type);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_MANIFEST_DESCRIBEFUNCTIONS_H
