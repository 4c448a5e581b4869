//===- Elements.h - Ops on each element of tensors --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_ELEMENTS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_ELEMENTS_H

#include "mlir/IR/Value.h"

#include <optional>
#include <utility>

namespace neuroshard::raising {

/// The value that has the elements of `value`: of a result of a
/// `linalg.generic` over the elements of its operands in their order what the
/// body yields, of an argument of such a body the operand.
mlir::Value elementsOf(mlir::Value value);

/// The number that `value` has in each column: of `tensor.splat`,
/// `linalg.fill` and a number in the body of a `linalg.generic`. Null if there
/// is none.
mlir::Value repeated(mlir::Value value);

/// The operands of a binary op on each element.
template <typename ArithOp, typename LinalgOp>
std::optional<std::pair<mlir::Value, mlir::Value>>
operandsOf(mlir::Value value) {
  value = elementsOf(value);
  if (auto op = value.getDefiningOp<ArithOp>())
    return std::pair{elementsOf(op.getLhs()), elementsOf(op.getRhs())};
  if (auto op = value.getDefiningOp<LinalgOp>())
    return std::pair{elementsOf(op.getInputs()[0]),
                     elementsOf(op.getInputs()[1])};
  return std::nullopt;
}

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_ELEMENTS_H
