//===- Fault.cpp - A pass that fails on some modules ----------------------===//

#include "Passes.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/ErrorHandling.h"

namespace neuroshard {
#define GEN_PASS_DEF_FAULT
#include "Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;

namespace {

struct FaultPass : public neuroshard::impl::FaultBase<FaultPass> {
  using FaultBase::FaultBase;

  ir::TableOp tableOf(ir::ShardOp shard) {
    return getOperation().lookupSymbol<ir::TableOp>(shard.getTable());
  }

  /// The tables that some lookup reads so.
  llvm::DenseSet<StringRef> tablesReadBy(Pooling pooling) {
    llvm::DenseSet<StringRef> tables;
    getOperation().walk([&](ir::LookupOp lookup) {
      if (lookup.getPooling() == pooling)
        tables.insert(lookup.getTable());
    });
    return tables;
  }

  void failOnCutAdam() {
    getOperation().walk([&](ir::ShardOp shard) {
      ir::TableOp table = tableOf(shard);
      auto optimizer = table.getOptimizerAttr();
      if (!optimizer || optimizer.getKind() != OptimizerKind::Adam ||
          shard.getWidth() == table.getDim())
        return;
      shard.emitError("fault: Adam is cut by columns");
      signalPassFailure();
    });
  }

  void failOnCopies() {
    getOperation().walk([&](ir::ShardOp shard) {
      if (shard.getDevices().size() < 3)
        return;
      shard.emitError("fault: three copies");
      signalPassFailure();
    });
  }

  void crashOnMeanBesideUnpooled() {
    llvm::DenseSet<StringRef> mean = tablesReadBy(Pooling::Mean);
    llvm::DenseSet<StringRef> unpooled = tablesReadBy(Pooling::None);
    llvm::DenseSet<int64_t> withMean, withUnpooled;
    getOperation().walk([&](ir::ShardOp shard) {
      for (int64_t device : shard.getDevices()) {
        if (mean.contains(shard.getTable()))
          withMean.insert(device);
        if (unpooled.contains(shard.getTable()))
          withUnpooled.insert(device);
      }
    });
    for (int64_t device : withMean)
      if (withUnpooled.contains(device))
        llvm::report_fatal_error("fault: mean beside unpooled");
  }

  void runOnOperation() override {
    if (kind == "cut-adam")
      return failOnCutAdam();
    if (kind == "copies")
      return failOnCopies();
    if (kind == "mean-beside-unpooled")
      return crashOnMeanBesideUnpooled();
    getOperation()->emitError("unknown kind of fault: ") << kind.getValue();
    signalPassFailure();
  }
};

} // namespace
