//===- ReductionPatterns.cpp - Edits as patterns of MLIR's reducer --------===//

#include "FailureTest.h"
#include "Reduction.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Reducer/ReductionPatternInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace neuroshard;

namespace {

/// Applies an edit to an op if the module still fails with it.
struct EditPattern : RewritePattern {
  EditPattern(MLIRContext *context, const ModuleEdit &edit,
              std::shared_ptr<FailureTest> test)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context), edit(edit),
        test(std::move(test)) {
    setDebugName(edit.name);
  }

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    auto module = op->getParentOfType<ModuleOp>();
    while (module && module->getParentOfType<ModuleOp>())
      module = module->getParentOfType<ModuleOp>();
    if (!module)
      return failure();
    Trial trial(module, edit, op);
    if (trial.changed().empty())
      return failure();
    // MLIR's reducer folds ops and erases those that are dead without a test,
    // and ends with a crash if nothing of the failure is left.
    (void)applyPatternsGreedily(trial.module(), FrozenRewritePatternSet());
    if (!test->stillFails(trial.module()))
      return failure();
    return success(edit.apply(op, rewriter));
  }

  const ModuleEdit &edit;
  std::shared_ptr<FailureTest> test;
};

struct ReductionPatterns : DialectReductionPatternInterface {
  explicit ReductionPatterns(Dialect *dialect)
      : DialectReductionPatternInterface(dialect) {}

  void populateReductionPatterns(RewritePatternSet &) const override {}

  void populateReductionPatternsWithTester(RewritePatternSet &patterns,
                                           Tester &tester) const override {
    auto test = std::make_shared<FailureTest>(tester);
    for (const ModuleEdit &edit : allEdits())
      patterns.add(
          std::make_unique<EditPattern>(patterns.getContext(), edit, test));
  }
};

} // namespace

void neuroshard::addReductionPatterns(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, ir::NeuroShardDialect *dialect) {
        context->loadDialect<arith::ArithDialect, tensor::TensorDialect>();
        dialect->addInterface<ReductionPatterns>();
      });
}
