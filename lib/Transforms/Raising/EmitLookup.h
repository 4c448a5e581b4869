//===- EmitLookup.h - Writes a lookup that was found ------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_EMITLOOKUP_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_EMITLOOKUP_H

#include "Found/FoundLookup.h"

#include <map>
#include <set>
#include <tuple>

namespace neuroshard::raising {

/// An op that packs ids.
struct MadePack {
  ir::PackOp op;
  /// Whether each bag has the same number of ids: no offsets are given.
  bool isEven;
  /// Of the ids, before they are packed.
  int64_t rank;
  /// Why its ids or offsets are computed, if raising does so; or empty.
  llvm::StringRef computed;
};

/// Writes lookups of one block in their order. Lookups of the same ids,
/// offsets and weights, cut into the same bags, read one feature.
class LookupEmitter {
public:
  /// Replaces the result of `found` by a lookup of `table`. The old ops stay,
  /// without the use.
  ir::LookupOp emit(const FoundLookup &found, ir::TableOp table);

  llvm::ArrayRef<MadePack> getPacks() const { return packs; }

private:
  struct Packed {
    mlir::Value jagged;
    mlir::RankedTensorType ids;
  };
  Packed packedIds(const FoundLookup &found);
  std::string featureName(mlir::Value source);

  /// By the sources of ids, offsets and weights, whether the last offset is
  /// added, the rank of the ids, and how many of their dimensions count bags.
  std::map<std::tuple<void *, void *, void *, bool, int64_t, int64_t>, Packed>
      packed;
  std::set<std::string> names;
  llvm::SmallVector<MadePack> packs;
};

/// Name that the location of a value has (`loc("user")`); that of an argument
/// of a function without one is `prefix` and its number, that of another value
/// `prefix`.
std::string nameOf(mlir::Value value, llvm::StringRef prefix);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_EMITLOOKUP_H
