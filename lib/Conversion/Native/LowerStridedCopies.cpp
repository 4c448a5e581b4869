//===- LowerStridedCopies.cpp - Copy strided buffers by loops -------------===//
//
// Contiguous copies stay: they become a memcpy.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_LOWERSTRIDEDCOPIES
#include "neuroshard/Conversion/Native/Passes.h.inc"

/// True for what the conversion to LLVM copies by memcpy.
static bool isContiguous(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type)
    return false;
  return type.getLayout().isIdentity() ||
         (type.hasStaticShape() && type.getNumElements() > 0 &&
          memref::isStaticShapeAndContiguousRowMajor(type));
}

namespace {
struct LowerStridedCopies : impl::LowerStridedCopiesBase<LowerStridedCopies> {
  void runOnOperation() override {
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp copy) {
      if (!isContiguous(copy.getSource()) || !isContiguous(copy.getTarget()))
        copies.push_back(copy);
    });
    IRRewriter rewriter(&getContext());
    for (memref::CopyOp copy : copies) {
      rewriter.setInsertionPoint(copy);
      rewriter.replaceOpWithNewOp<linalg::CopyOp>(copy, copy.getSource(),
                                                  copy.getTarget());
    }
  }
};
} // namespace

} // namespace neuroshard
