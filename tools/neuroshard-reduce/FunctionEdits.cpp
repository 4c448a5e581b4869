//===- FunctionEdits.cpp - Drop ops, results and features -----------------===//

#include "Edits.h"
#include "Zeros.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace neuroshard;

using ir::JaggedType;
using ir::LookupOp;

namespace {

/// A function with one block that no op names, so that its type is free.
func::FuncOp freeFunction(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || !function.getBody().hasOneBlock() || !isUnnamed(function))
    return {};
  return function;
}

/// Adds the features that a user of ids reads; false if it may read all.
bool addFeatures(Operation *user, llvm::SmallSetVector<StringAttr, 4> &used) {
  return llvm::TypeSwitch<Operation *, bool>(user)
      .Case<LookupOp, ir::UnpackOp>([&](auto op) {
        used.insert(op.getFeatureAttr());
        return true;
      })
      .Case<ir::NumIdsOp>([&](ir::NumIdsOp op) {
        if (op.getFeatureAttr())
          used.insert(op.getFeatureAttr());
        return op.getFeatureAttr() != nullptr;
      })
      .Case<ir::BatchSizeOp>([](ir::BatchSizeOp) { return true; })
      .Default([](Operation *) { return false; });
}

/// The positions of the features of `ids` that some op reads, or of the first
/// if none does; nothing if an op may read all, or if all are read.
std::optional<SmallVector<size_t>> usedFeatures(Value ids) {
  auto type = dyn_cast<JaggedType>(ids.getType());
  llvm::SmallSetVector<StringAttr, 4> used;
  if (!type || !llvm::all_of(ids.getUsers(), [&](Operation *user) {
        return addFeatures(user, used);
      }))
    return std::nullopt;
  SmallVector<size_t> kept;
  for (auto [index, feature] : llvm::enumerate(type.getFeatures()))
    if (used.contains(feature))
      kept.push_back(index);
  if (kept.empty())
    kept.push_back(0);
  if (kept.size() == type.getFeatures().size())
    return std::nullopt;
  return kept;
}

/// The type with the features at these positions alone.
JaggedType keepFeatures(JaggedType type, ArrayRef<size_t> positions) {
  SmallVector<StringAttr> kept;
  for (size_t position : positions)
    kept.push_back(type.getFeatures()[position]);
  return JaggedType::get(type.getContext(), kept, type.getIdType(),
                         type.getWeighted());
}

/// Takes the features that no op reads out of the type of `ids`.
bool dropFeaturesOf(Value ids) {
  std::optional<SmallVector<size_t>> kept = usedFeatures(ids);
  if (kept)
    ids.setType(keepFeatures(cast<JaggedType>(ids.getType()), *kept));
  return kept.has_value();
}

/// Erases an op; zeros take the place of results that are used.
bool dropOp(Operation *op, RewriterBase &rewriter) {
  if (op->use_empty()) {
    rewriter.eraseOp(op);
    return true;
  }
  if (!llvm::all_of(op->getResultTypes(), hasZeros))
    return false;
  replaceByZeros(op, rewriter);
  return true;
}

} // namespace

bool neuroshard::dropLookup(Operation *op, RewriterBase &rewriter) {
  auto lookup = dyn_cast<LookupOp>(op);
  return lookup && dropOp(lookup, rewriter);
}

bool neuroshard::dropOtherOp(Operation *op, RewriterBase &rewriter) {
  if (!op->getParentOfType<func::FuncOp>() || isa<LookupOp>(op) ||
      op->hasTrait<OpTrait::IsTerminator>())
    return false;
  return (op->use_empty() || !isZeros(op)) && dropOp(op, rewriter);
}

bool neuroshard::dropStatistics(Operation *op, RewriterBase &rewriter) {
  auto lookup = dyn_cast<LookupOp>(op);
  if (!lookup || !lookup.getStatsAttr())
    return false;
  rewriter.modifyOpInPlace(lookup, [&] { lookup.removeStatsAttr(); });
  return true;
}

bool neuroshard::dropResults(Operation *op, RewriterBase &rewriter) {
  func::FuncOp function = freeFunction(op);
  if (!function)
    return false;
  Operation *end = function.getBody().front().getTerminator();
  llvm::BitVector dropped(end->getNumOperands());
  for (OpOperand &operand : end->getOpOperands())
    if (!operand.get().getDefiningOp<LookupOp>())
      dropped.set(operand.getOperandNumber());
  if (dropped.none() || !isa<func::ReturnOp>(end))
    return false;
  rewriter.modifyOpInPlace(end, [&] { end->eraseOperands(dropped); });
  if (function.getAllResultAttrs())
    rewriter.modifyOpInPlace(function, [&] { function.removeResAttrsAttr(); });
  updateType(function, rewriter);
  return true;
}

bool neuroshard::dropPackedFeatures(Operation *op, RewriterBase &rewriter) {
  auto pack = dyn_cast<ir::PackOp>(op);
  std::optional<SmallVector<size_t>> kept;
  if (!pack || !(kept = usedFeatures(pack.getResult())))
    return false;
  auto keep = [&](OperandRange values) {
    SmallVector<Value> list;
    if (!values.empty()) // Weights, of ids that have none.
      for (size_t position : *kept)
        list.push_back(values[position]);
    return list;
  };
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(pack);
  rewriter.replaceOpWithNewOp<ir::PackOp>(
      pack, keepFeatures(pack.getResult().getType(), *kept),
      keep(pack.getIds()), keep(pack.getOffsets()), keep(pack.getWeights()));
  return true;
}

bool neuroshard::dropFeatures(Operation *op, RewriterBase &rewriter) {
  func::FuncOp function = freeFunction(op);
  if (!function)
    return false;
  bool changed = false;
  Block &body = function.getBody().front();
  rewriter.modifyOpInPlace(function, [&] {
    for (unsigned i = body.getNumArguments(); i-- > 0;) {
      if (body.getArgument(i).use_empty()) {
        changed = succeeded(function.eraseArgument(i)) || changed;
        continue;
      }
      changed |= dropFeaturesOf(body.getArgument(i));
    }
  });
  if (changed)
    updateType(function, rewriter);
  return changed;
}
