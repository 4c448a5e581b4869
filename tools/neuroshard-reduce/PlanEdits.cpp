//===- PlanEdits.cpp - Drop or shrink what plans are made of --------------===//

#include "Edits.h"
#include "Zeros.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace neuroshard;

using ir::PinOp;
using ir::PlanOp;
using ir::ShardOp;
using ir::TopologyOp;

namespace {

constexpr int64_t kSmallBatch = 8;

/// The first entry of a list, if there is a list.
template <typename Values> void keepFirst(Values &&values, auto set) {
  if (values && !values->empty())
    set((*values)[0]);
}

template <typename PlacedOp>
void wrapDevices(PlacedOp op, int64_t count, RewriterBase &rewriter) {
  llvm::SmallSetVector<int64_t, 8> devices;
  for (int64_t device : op.getDevices())
    devices.insert(device % count);
  rewriter.modifyOpInPlace(op, [&] { op.setDevices(devices.getArrayRef()); });
}

/// Where shards have lost their copies, or not as many of each, none drift.
void dropDrift(PlanOp plan, RewriterBase &rewriter) {
  llvm::MapVector<StringRef, SmallVector<ShardOp>> shardsOfTable;
  for (ShardOp shard : plan.getBody().getOps<ShardOp>())
    shardsOfTable[shard.getTable()].push_back(shard);
  for (auto &[table, shards] : shardsOfTable) {
    bool drift = llvm::all_of(shards, [&](ShardOp shard) {
      return shard.hasCopies() &&
             driftMismatch(shards.front().getSyncedCopies(),
                           shard.getSyncedCopies())
                 .empty();
    });
    for (ShardOp shard : shards)
      if (!drift && shard.getSyncEvery() != 0)
        rewriter.modifyOpInPlace(shard, [&] { shard.setSyncEvery(0); });
  }
}

/// As many devices like the first, on one level and one host.
bool setDevices(TopologyOp topology, int64_t count, RewriterBase &rewriter) {
  if (topology.getNumDevices() <= count)
    return false;
  MLIRContext *context = topology.getContext();
  auto first = cast<ir::DevicesAttr>(topology.getDevices()[0]);
  auto devices = ir::DevicesAttr::get(
      context, count, first.getDeviceClass(), /*host=*/0,
      first.getMemoryBytes(), first.getDenseReserve(),
      first.getFragmentationReserve(), first.getCommunicatorReserve());
  auto last = cast<ir::LevelAttr>(topology.getLevels().getValue().back());
  auto level = ir::LevelAttr::get(context, last.getName(),
                                  DenseI64ArrayAttr::get(context, {count}),
                                  last.getBandwidthGBps(), last.getLatencyUs(),
                                  last.getGroupBandwidthGBps());
  rewriter.modifyOpInPlace(topology, [&] {
    topology.setDevicesAttr(rewriter.getArrayAttr({devices}));
    topology.setLevelsAttr(rewriter.getArrayAttr({level}));
    keepFirst(topology.getHostMemory(), [&](int64_t bytes) {
      topology.setHostMemoryAttr(rewriter.getDenseI64ArrayAttr({bytes}));
    });
    keepFirst(topology.getHostDisks(), [&](Attribute disk) {
      topology.setHostDisksAttr(rewriter.getArrayAttr({disk}));
    });
  });
  for (auto plan : topology->getParentOfType<ModuleOp>().getOps<PlanOp>()) {
    if (plan.getTopology() != topology.getSymName())
      continue;
    for (ShardOp shard : plan.getBody().getOps<ShardOp>())
      wrapDevices(shard, count, rewriter);
    for (PinOp pin : plan.getBody().getOps<PinOp>())
      wrapDevices(pin, count, rewriter);
    dropDrift(plan, rewriter);
  }
  return true;
}

bool setBatch(Operation *op, RewriterBase &rewriter,
              llvm::function_ref<int64_t(int64_t)> change) {
  StringRef name = ir::NeuroShardDialect::kBatchAttrName;
  auto batch = op->getAttrOfType<IntegerAttr>(name);
  if (!isa<ModuleOp>(op) || !batch || change(batch.getInt()) >= batch.getInt())
    return false;
  rewriter.modifyOpInPlace(op, [&] {
    op->setAttr(name, rewriter.getI64IntegerAttr(change(batch.getInt())));
  });
  return true;
}

} // namespace

bool neuroshard::dropSymbol(Operation *op, RewriterBase &rewriter) {
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  if (!symbol || isa<ModuleOp, ir::TableOp>(op) || !isUnnamed(symbol))
    return false;
  rewriter.eraseOp(op);
  return true;
}

bool neuroshard::dropShard(Operation *op, RewriterBase &rewriter) {
  if (!isa<ShardOp, PinOp>(op))
    return false;
  rewriter.eraseOp(op);
  return true;
}

bool neuroshard::dropCopies(Operation *op, RewriterBase &rewriter) {
  auto shard = dyn_cast<ShardOp>(op);
  if (!shard || !shard.hasCopies())
    return false;
  rewriter.modifyOpInPlace(
      shard, [&] { shard.setDevices({shard.getDevices().front()}); });
  dropDrift(cast<PlanOp>(shard->getParentOp()), rewriter);
  return true;
}

bool neuroshard::dropProvenance(Operation *op, RewriterBase &rewriter) {
  auto plan = dyn_cast<PlanOp>(op);
  if (!plan || !plan.getProvenanceAttr())
    return false;
  rewriter.modifyOpInPlace(plan, [&] { plan.removeProvenanceAttr(); });
  return true;
}

bool neuroshard::makeOneDevice(Operation *op, RewriterBase &rewriter) {
  auto topology = dyn_cast<TopologyOp>(op);
  return topology && setDevices(topology, 1, rewriter);
}

bool neuroshard::halveDevices(Operation *op, RewriterBase &rewriter) {
  auto topology = dyn_cast<TopologyOp>(op);
  return topology && topology.getNumDevices() > 1 &&
         setDevices(topology, topology.getNumDevices() / 2, rewriter);
}

bool neuroshard::dropPlanning(Operation *op, RewriterBase &rewriter) {
  StringRef name = ir::NeuroShardDialect::kPlanningAttrName;
  if (!isa<ModuleOp>(op) || !op->hasAttr(name))
    return false;
  rewriter.modifyOpInPlace(op, [&] { op->removeAttr(name); });
  return true;
}

bool neuroshard::makeSmallBatch(Operation *op, RewriterBase &rewriter) {
  return setBatch(op, rewriter, [](int64_t) { return kSmallBatch; });
}

bool neuroshard::halveBatch(Operation *op, RewriterBase &rewriter) {
  return setBatch(op, rewriter, [](int64_t batch) {
    return std::max<int64_t>(batch / 2, 1);
  });
}
