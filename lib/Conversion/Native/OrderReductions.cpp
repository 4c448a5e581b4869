//===- OrderReductions.cpp - Innermost loops that LLVM can vectorise ------===//
//
// With the reduction loop innermost, a sum that may not be reassociated is a
// chain of dependent scalar additions.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_ORDERREDUCTIONS
#include "neuroshard/Conversion/Native/Passes.h.inc"

/// The loop over the last dimension of the (first) result, if it is a
/// parallel loop.
static std::optional<unsigned> findInnermostLoop(linalg::GenericOp op) {
  AffineMap map = op.getIndexingMapsArray()[op.getNumDpsInputs()];
  if (map.getNumResults() == 0)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(map.getResults().back());
  if (!dim || op.getIteratorTypesArray()[dim.getPosition()] !=
                  utils::IteratorType::parallel)
    return std::nullopt;
  return dim.getPosition();
}

/// True if the loop reads neighbouring elements of every input that depends on
/// it: only the last dimension does.
static bool isContiguous(linalg::GenericOp op, unsigned loop) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ArrayRef<AffineMap> inputs = ArrayRef(maps).take_front(op.getNumDpsInputs());
  return llvm::all_of(inputs, [&](AffineMap map) {
    if (!map.isFunctionOfDim(loop))
      return true;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    return last && last.getPosition() == loop &&
           llvm::none_of(map.getResults().drop_back(), [&](AffineExpr expr) {
             return expr.isFunctionOfDim(loop);
           });
  });
}

/// The new order of the loops: parallel ones, reductions, `innermost`.
static SmallVector<unsigned> orderLoops(linalg::GenericOp op,
                                        unsigned innermost) {
  SmallVector<unsigned> parallel, reductions;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (type == utils::IteratorType::reduction)
      reductions.push_back(loop);
    else if (loop != innermost)
      parallel.push_back(loop);
  }
  SmallVector<unsigned> order = std::move(parallel);
  llvm::append_range(order, reductions);
  order.push_back(innermost);
  return order;
}

namespace {
struct OrderReductions : impl::OrderReductionsBase<OrderReductions> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> candidates;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (op.getNumReductionLoops() > 0 && op.getNumParallelLoops() > 0)
        candidates.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::GenericOp op : candidates) {
      // An op that uses linalg.index computes with the loops' numbers; the
      // permutation rewrites those too.
      std::optional<unsigned> innermost = findInnermostLoop(op);
      if (!innermost || !isContiguous(op, *innermost))
        continue;
      SmallVector<unsigned> order = orderLoops(op, *innermost);
      if (llvm::is_sorted(order))
        continue;
      rewriter.setInsertionPoint(op);
      if (succeeded(linalg::interchangeGenericOp(rewriter, op, order)))
        ++numPermuted;
    }
  }
};
} // namespace

} // namespace neuroshard
