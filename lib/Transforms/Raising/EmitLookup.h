//===- EmitLookup.h - Writes a lookup that was found ------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_EMITLOOKUP_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_EMITLOOKUP_H

#include "FoundLookup.h"

#include <map>
#include <set>
#include <tuple>

namespace neuroshard::raising {

/// Writes lookups of one block in their order. Lookups of the same ids,
/// offsets and weights read one feature.
class LookupEmitter {
public:
  /// Replaces the result of `found` by a lookup of `table`. The old ops stay,
  /// without the use.
  ir::LookupOp emit(const FoundLookup &found, ir::TableOp table);

  /// The ops that pack ids, and whether each sample has the same number of
  /// them.
  llvm::ArrayRef<std::pair<ir::PackOp, bool>> getPacks() const { return packs; }

private:
  struct Packed {
    mlir::Value jagged;
    mlir::RankedTensorType ids;
  };
  Packed packedIds(const FoundLookup &found);
  std::string featureName(mlir::Value source);

  std::map<std::tuple<void *, void *, void *, bool>, Packed> packed;
  std::set<std::string> names;
  llvm::SmallVector<std::pair<ir::PackOp, bool>> packs;
};

/// Name that the location of a value has (`loc("user")`); that of an argument
/// of a function without one is `prefix` and its number, that of another value
/// `prefix`.
std::string nameOf(mlir::Value value, llvm::StringRef prefix);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_EMITLOOKUP_H
