//===- IRToManifest.h - From partitioned IR to a manifest -------*- C++ -*-===//
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_MANIFEST_IRTOMANIFEST_H
#define NEUROSHARD_CONVERSION_MANIFEST_IRTOMANIFEST_H

#include "neuroshard/Artifact/Manifest.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Describes a module at level 4: everything but target CPU, names of
/// libraries and the reference. Programs are numbered in the order of their
/// ops. Errors, such as a function that host code cannot call, are emitted.
mlir::FailureOr<Manifest> describeArtifact(mlir::ModuleOp module);

/// Describes the functions of a reference program, given the module before
/// and after neuroshard-lower-reference. A table's number is its place among
/// the tables of `logical`.
mlir::FailureOr<std::vector<FunctionSpec>>
describeReference(mlir::ModuleOp logical, mlir::ModuleOp lowered);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_MANIFEST_IRTOMANIFEST_H
