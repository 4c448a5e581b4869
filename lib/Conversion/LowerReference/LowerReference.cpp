//===- LowerReference.cpp - Logical IR to the naive program ---------------===//

#include "neuroshard/Conversion/Passes.h"

#include "LowerOps.h"

#include "neuroshard/Conversion/Grid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_LOWERREFERENCE
#include "neuroshard/Conversion/Passes.h.inc"

/// Ops of level 1, and those that outline and differentiate add.
static bool isLogical(Operation *op) {
  return isa<ir::TopologyOp, ir::TableOp, ir::PlanOp, ir::ShardOp, ir::PinOp,
             ir::PackOp, ir::FromKeyedOp, ir::UnpackOp, ir::BatchSizeOp,
             ir::NumIdsOp, ir::LookupOp, ir::UpdateOp, ir::WeightsGradientOp,
             ir::SuspendOp, ir::ResumeOp, ir::SaveOp, ir::DiscardOp,
             ir::RestoreOp>(op);
}

static LogicalResult checkLogical(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    if (!isa<ir::NeuroShardDialect>(op->getDialect()) || isLogical(op))
      return WalkResult::advance();
    return op->emitOpError("is not logical IR: the reference is lowered before "
                           "'neuroshard-shard'");
  });
  return failure(result.wasInterrupted());
}

static void eraseDeclarations(ModuleOp module) {
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<ir::TopologyOp, ir::TableOp, ir::PlanOp>(op) || isUnusedGrid(op))
      op.erase();
}

namespace {
struct LowerDiscard : OpConversionPattern<ir::DiscardOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::DiscardOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerReference : impl::LowerReferenceBase<LowerReference> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkLogical(module)))
      return signalPassFailure();
    TableInfos tables = collectTables(module);
    if (failed(addTableArguments(module)))
      return signalPassFailure();
    eraseDeclarations(module);

    TypeConverter converter;
    addJaggedTypeConversions(converter);
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    populateStructuralPatterns(converter, patterns, target);
    populateJaggedPatterns(converter, patterns);
    populateLookupPatterns(converter, tables, patterns);
    populateUpdatePatterns(converter, tables, patterns);
    patterns.add<LowerDiscard>(converter, &getContext());
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

} // namespace neuroshard
