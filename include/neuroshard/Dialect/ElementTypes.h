//===- ElementTypes.h - MLIR's types of elements and ids -------*- C++ -*-===//

#ifndef NEUROSHARD_DIALECT_ELEMENTTYPES_H
#define NEUROSHARD_DIALECT_ELEMENTTYPES_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Types.h"

#include "mlir/IR/BuiltinTypes.h"

namespace neuroshard {

/// For f32, f16, bf16 and the quantized types, the only element types that the
/// dialect's verifiers allow.
inline ElementType elementTypeOf(mlir::Type type) {
  if (auto quantized = llvm::dyn_cast<ir::QuantizedType>(type))
    return quantized.getFormat();
  if (type.isF16())
    return ElementType::F16;
  return type.isBF16() ? ElementType::BF16 : ElementType::F32;
}

inline mlir::Type typeOf(ElementType type, mlir::MLIRContext *context) {
  switch (type) {
  case ElementType::F32:
    break;
  case ElementType::F16:
    return mlir::Float16Type::get(context);
  case ElementType::BF16:
    return mlir::BFloat16Type::get(context);
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Fp8:
    return ir::QuantizedType::get(context, type);
  }
  return mlir::Float32Type::get(context);
}

/// For i32 or i64, the only types of ids.
inline IdType idTypeOf(mlir::Type type) {
  return type.isInteger(32) ? IdType::I32 : IdType::I64;
}

} // namespace neuroshard

#endif // NEUROSHARD_DIALECT_ELEMENTTYPES_H
