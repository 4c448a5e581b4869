//===- LooksLike.cpp - Lookups in forms that are not raised ---------------===//

#include "LooksLike.h"
#include "TableSources.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

static bool isId(Type type) { return type.isInteger(32) || type.isInteger(64); }

static bool isLoad(Operation *op) {
  return isa<tensor::ExtractOp, memref::LoadOp, affine::AffineLoadOp>(op);
}

/// Whether `value` is an element of a tensor that the body of a linalg op
/// takes, or an integer that another region does.
static bool isElement(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Operation *owner = argument.getOwner()->getParentOp();
  return isId(value.getType()) ||
         (isa<linalg::LinalgOp>(owner) && value.getType().isIndex());
}

/// Whether `index` is computed in `root` from what is loaded there.
static bool isLoadedIn(Operation *root, Value index) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [root](Operation *op) { return root->isProperAncestor(op); };
  (void)getBackwardSlice(index, &slice, options);
  return isElement(index) || llvm::any_of(slice, [root](Operation *op) {
           return root->isProperAncestor(op) &&
                  (isLoad(op) || llvm::any_of(op->getOperands(), isElement));
         });
}

static bool isMatrix(Type type, int64_t rank) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (auto tensor = builtinTensor(type))
    shaped = tensor;
  return shaped && shaped.hasRank() && shaped.getRank() == rank &&
         isa<FloatType>(shaped.getElementType());
}

/// Whether the region of `root` reads a row or an element by an id.
static bool readsById(Operation *root) {
  return root
      ->walk([&](Operation *op) {
        bool reads = isLoad(op) || isa<tensor::ExtractSliceOp>(op);
        if (!reads || !isMatrix(op->getOperand(0).getType(), 2) ||
            root->isAncestor(
                op->getOperand(0).getParentRegion()->getParentOp()) ||
            !isStored(op->getOperand(0)))
          return WalkResult::advance();
        bool byId =
            llvm::any_of(op->getOperands().drop_front(),
                         [&](Value index) { return isLoadedIn(root, index); });
        return byId ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool neuroshard::raising::looksLikeLookup(Operation *op) {
  llvm::StringRef name = op->getName().getStringRef();
  bool ofTorch = name == "torch.aten.index_select" ||
                 name.starts_with("torch.aten.index.Tensor");
  if (ofTorch || name == "tosa.gather")
    return op->getNumOperands() > 1 && isStored(op->getOperand(0)) &&
           isMatrix(op->getOperand(0).getType(), ofTorch ? 2 : 3);
  return op->getNumRegions() && readsById(op);
}
