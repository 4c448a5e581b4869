//===- DecomposeAggregates.cpp - Take structured ops apart ----------------===//
//
// Each op knows its own decomposition; this pass only asks for it.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_DECOMPOSEAGGREGATES
#include "neuroshard/Conversion/Native/Passes.h.inc"

namespace {
struct DecomposeAggregates
    : impl::DecomposeAggregatesBase<DecomposeAggregates> {
  void runOnOperation() override {
    SmallVector<linalg::AggregatedOpInterface> aggregates;
    getOperation()->walk([&](linalg::AggregatedOpInterface op) {
      if (op->getNumResults() > 0)
        aggregates.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::AggregatedOpInterface op : aggregates) {
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
      if (failed(values)) {
        op.emitError("cannot be decomposed");
        return signalPassFailure();
      }
      rewriter.replaceOp(op, *values);
    }
  }
};
} // namespace

} // namespace neuroshard
