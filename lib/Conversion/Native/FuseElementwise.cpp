//===- FuseElementwise.cpp - Fewer passes over memory ---------------------===//

#include "RemarkLock.h"

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "neuroshard/Conversion/Native/Passes.h.inc"

/// Whether the op gives its input with the dimensions in another order.
static bool isTransposition(linalg::GenericOp op) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  return op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 &&
         op.getNumReductionLoops() == 0 &&
         yield.getOperand(0) == op.getBody()->getArgument(0) &&
         op.getIndexingMapsArray()[0].isPermutation();
}

/// Fusion into a sum would compute the producer for each product again, but
/// for one that only says where elements are.
static bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer)
    return false;
  return isTransposition(producer) ||
         (producer->hasOneUse() && consumer.getNumReductionLoops() == 0 &&
          producer.getNumReductionLoops() == 0);
}

namespace {
struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  size_t countOps() {
    size_t count = 0;
    getOperation()->walk([&](linalg::GenericOp) { ++count; });
    return count;
  }

  void runOnOperation() override {
    size_t before = countOps();
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    size_t after = countOps();
    if (after >= before)
      return;
    auto lock = remarkLock();
    remark::passed(getOperation()->getLoc(),
                   remark::RemarkOpts::name("Fused").category(
                       "neuroshard-fuse-elementwise"))
        << remark::add("{0} of {1} structured ops computed in the loops of "
                       "their users",
                       before - after, before);
  }
};
} // namespace

} // namespace neuroshard
