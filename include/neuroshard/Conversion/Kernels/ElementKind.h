//===- ElementKind.h - Types of a table's elements -------------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_ELEMENTKIND_H
#define NEUROSHARD_CONVERSION_KERNELS_ELEMENTKIND_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace mlir {
class MLIRContext;
class Type;
} // namespace mlir

namespace neuroshard {

enum class ElementKind { F32, F16, BF16 };

/// "f32", "f16" or "bf16", as manifests, names of kernels and IR have it.
llvm::StringRef getElementName(ElementKind element);

/// The type of IR.
mlir::Type getElementType(mlir::MLIRContext *context, ElementKind element);

/// Bytes of one element.
int64_t getElementBytes(ElementKind element);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_ELEMENTKIND_H
