//===- FoundLookup.h - A lookup that a program spells out -------*- C++ -*-===//
//
// What the source forms (LinalgForms.h, LoopForms.h, TorchForms.h,
// StableHloForms.h) find and EmitLookup.h turns into ops of the dialect.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_FOUNDLOOKUP_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_FOUNDLOOKUP_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <functional>
#include <optional>
#include <string>

namespace neuroshard::raising {

/// Makes a value at the builder's place, or gives one that is there.
using Maker = std::function<mlir::Value(mlir::OpBuilder &, mlir::Location)>;

struct FoundLookup {
  /// The op whose result is replaced.
  mlir::Operation *op = nullptr;
  /// The result that is replaced: the leading dimensions of the ids (all of
  /// them if rows are not pooled), then the dim of the table.
  mlir::Value result;
  /// Its type as a builtin tensor.
  mlir::RankedTensorType type;
  /// The operand that is the table, of `op` or of an op before it.
  mlir::OpOperand *table = nullptr;
  Pooling pooling = Pooling::None;
  /// A tensor of i32 or i64 of any rank. With `offsets` it has one dimension;
  /// without, the last `bagRank` dimensions are the ids of one bag.
  Maker ids;
  int64_t bagRank = 0;
  /// The number of ids of each bag, if it is known.
  int64_t bagSize = mlir::ShapedType::kDynamic;
  /// A tensor of i32 or i64 with batch + 1 entries, the first 0; or empty.
  Maker offsets;
  /// A tensor of f32 of the shape of the ids; or empty.
  Maker weights;
  std::optional<int64_t> paddingIdx;
  /// What ids, offsets and weights are made of: lookups with the same three
  /// values read the same feature.
  mlir::Value idsSource, offsetsSource, weightsSource;
  /// Why ids or offsets are others than those of the source, for inputs that
  /// are not valid; empty if they are not.
  llvm::StringRef guard;
  /// Whether `offsets` ends with the ids where `offsetsSource` does not.
  bool addsLastOffset = false;
  /// What the feature is named by; null: `idsSource`.
  mlir::Value idsName;
  /// The ops that the lookup takes the place of, users before definitions.
  llvm::SmallVector<mlir::Operation *> consumed;
};

struct Miss {
  std::string reason;
  /// The op that is the reason: the one that looks like a lookup, or one in it.
  mlir::Operation *culprit;
};

/// Why ops that look like lookups, or like the pooling of one, are not.
struct Misses {
  /// By op in the order found.
  llvm::MapVector<mlir::Operation *, Miss> lookups, poolings;

  /// Always gives nullopt, for the matchers to return.
  std::nullopt_t lookup(mlir::Operation *op, std::string reason,
                        mlir::Operation *culprit = nullptr) {
    lookups.insert({op, {std::move(reason), culprit ? culprit : op}});
    return std::nullopt;
  }
  std::nullopt_t pooling(mlir::Operation *op, std::string reason) {
    poolings.insert({op, {std::move(reason), op}});
    return std::nullopt;
  }
};

/// The text of a type, an attribute or an op's name, for reasons.
template <typename T> std::string textOf(const T &printed) {
  std::string text;
  llvm::raw_string_ostream(text) << printed;
  return text;
}

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_FOUNDLOOKUP_H
