//===- Values.h - Queries and makers of values for raising ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_VALUES_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_VALUES_H

#include "FoundLookup.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace neuroshard::raising {

/// Whether `op` is there and has this name; it need not be registered.
inline bool isNamed(mlir::Operation *op, llvm::StringRef name) {
  return op && op->getName().getStringRef() == name;
}

/// Whether shapes are the same but for sizes that are not known.
bool fit(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> other);

/// A maker of a value that is there.
Maker there(mlir::Value value);

/// A maker of ids from a tensor of i32, i64 or index.
Maker idsFrom(mlir::Value tensor);

/// What makes an id of one, in the body of a `linalg.generic`.
using IdMap =
    std::function<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value)>;

/// The constant `number` of the type of `id`.
mlir::Value numberLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value id,
                       int64_t number);

/// A maker of `ids`, of i32 or i64, after `map` for each of them.
Maker mapped(Maker ids, IdMap map);

/// `indices` without its last dimension, which has size 1.
mlir::Value withoutLastDim(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value indices);

/// What a value was before it got another shape or type of one.
mlir::Value beforeReshapes(mlir::Value value);

/// Whether elements of the type can be ids, after a cast.
bool isIdType(mlir::Type element);

/// The number that every element of `value` is, if that is known: a constant,
/// `linalg.fill`, `tensor.splat` or a broadcast of one.
std::optional<double> splatOf(mlir::Value value);

/// `value` before casts between integers and index that keep its number.
mlir::Value beforeCasts(mlir::Value value);

/// The type of a ranked `tensor` before `tensor.cast` has forgotten sizes: the
/// first ranked one.
mlir::RankedTensorType typeBeforeCasts(mlir::Value tensor);

/// The value that `value` has as an index or integer constant.
std::optional<int64_t> constantOf(mlir::Value value);

/// The first op of `module` that names the symbol, or null. Also where an op of
/// another dialect may have symbols of its own, so that MLIR cannot say which
/// uses there are: one that has the same name counts.
mlir::Operation *namesSymbol(mlir::ModuleOp module, mlir::StringAttr symbol);

/// The sum (operand order free): the other operand, if `value` is
/// `arith.addf` of `term`.
mlir::Value addedTo(mlir::Value value, mlir::Value term);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_VALUES_H
