//===- DefinedAttributes.h - Trait: no attributes but the op's --*- C++ -*-===//

#ifndef NEUROSHARD_DIALECT_DEFINEDATTRIBUTES_H
#define NEUROSHARD_DIALECT_DEFINEDATTRIBUTES_H

#include "mlir/IR/OpDefinition.h"

namespace neuroshard::ir {

/// Refuses attributes that the op does not define and that have no dialect's
/// prefix, such as a misspelt name.
mlir::LogicalResult verifyDefinedAttributes(mlir::Operation *op);

template <typename ConcreteType>
class DefinedAttributes
    : public mlir::OpTrait::TraitBase<ConcreteType, DefinedAttributes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return verifyDefinedAttributes(op);
  }
};

} // namespace neuroshard::ir

#endif // NEUROSHARD_DIALECT_DEFINEDATTRIBUTES_H
