//===- PlanOps.cpp - The plan and its shards ------------------------------===//

#include "LookupVerifier.h"

#include "neuroshard/Dialect/PlanListener.h"
#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace neuroshard::ir;

/// Checks that all devices are in the topology.
static LogicalResult verifyDevices(Operation *op, ArrayRef<int64_t> devices,
                                   SymbolTableCollection &symbols) {
  auto plan = cast<PlanOp>(op->getParentOp());
  auto topology =
      symbols.lookupNearestSymbolFrom<TopologyOp>(plan, plan.getTopologyAttr());
  if (!topology) // Reported by the plan itself.
    return success();
  int64_t numDevices = topology.getNumDevices();
  for (int64_t device : devices) {
    if (device < numDevices)
      continue;
    InFlightDiagnostic diagnostic =
        op->emitOpError("device must be one of the topology's ")
        << numDevices << ", numbered from 0, got: " << device;
    diagnostic.attachNote(topology.getLoc()) << "the topology is defined here";
    return diagnostic;
  }
  return success();
}

static LogicalResult verifyDeviceList(Operation *op,
                                      ArrayRef<int64_t> devices) {
  if (devices.empty())
    return op->emitOpError("must name at least one device");
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t device : devices) {
    if (device < 0)
      return op->emitOpError("device must not be negative, got: ") << device;
    if (!seen.insert(device).second)
      return op->emitOpError("device ") << device << " is named twice";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// PlanOp
//===----------------------------------------------------------------------===//

static bool overlap(ShardOp a, ShardOp b) {
  return a.getRowBegin() < b.getRowEnd() && b.getRowBegin() < a.getRowEnd() &&
         a.getColBegin() < b.getColEnd() && b.getColBegin() < a.getColEnd();
}

/// Shards of one table, in the order of their rows, then columns. Only shards
/// whose rows overlap are compared, so row shards cost n log n.
static LogicalResult verifyNoOverlap(SmallVectorImpl<ShardOp> &shards) {
  llvm::sort(shards, [](ShardOp a, ShardOp b) {
    return std::pair(a.getRowBegin(), a.getColBegin()) <
           std::pair(b.getRowBegin(), b.getColBegin());
  });
  for (size_t i = 0; i < shards.size(); ++i)
    for (size_t j = i + 1; j < shards.size(); ++j) {
      if (shards[j].getRowBegin() >= shards[i].getRowEnd())
        break;
      if (!overlap(shards[i], shards[j]))
        continue;
      InFlightDiagnostic diagnostic =
          shards[j].emitOpError("overlaps another shard of table '")
          << neuroshard::printable(shards[j].getTable())
          << "'; every element has one owner";
      diagnostic.attachNote(shards[i].getLoc()) << "the other shard is here";
      return diagnostic;
    }
  return success();
}

/// The results of a table travel one way.
static LogicalResult verifyOneRoute(ArrayRef<ShardOp> shards) {
  ShardOp first = shards.front();
  for (ShardOp shard : shards) {
    if (shard.getRoute() == first.getRoute())
      continue;
    InFlightDiagnostic diagnostic =
        shard->emitOpError("must have the route of the other shards of table '")
        << neuroshard::printable(shard.getTable()) << "', "
        << toString(first.getRoute())
        << ", got: " << toString(shard.getRoute());
    diagnostic.attachNote(first.getLoc()) << "the other shard is here";
    return diagnostic;
  }
  return success();
}

/// All copies of a table drift alike.
static LogicalResult verifyOneSync(ArrayRef<ShardOp> shards) {
  ShardOp first = shards.front();
  for (ShardOp shard : shards) {
    std::string error =
        driftMismatch(first.getSyncedCopies(), shard.getSyncedCopies());
    if (error.empty())
      continue;
    InFlightDiagnostic diagnostic = shard->emitOpError(error);
    diagnostic.attachNote(first.getLoc()) << "the other shard is here";
    return diagnostic;
  }
  return success();
}

LogicalResult PlanOp::verify() {
  llvm::MapVector<StringAttr, SmallVector<ShardOp>> shardsOfTable;
  llvm::DenseMap<StringAttr, ShardOp> shardOfName;
  for (Operation &op : *getBody().begin()) {
    if (isa<PinOp>(op))
      continue;
    auto shard = dyn_cast<ShardOp>(op);
    if (!shard)
      return op.emitOpError("is not allowed in a plan, which holds shards and "
                            "pins only");
    auto [it, inserted] = shardOfName.try_emplace(shard.getNameAttr(), shard);
    if (!inserted) {
      InFlightDiagnostic diagnostic = shard.emitOpError("name ")
                                      << shard.getNameAttr()
                                      << " is used twice in the plan";
      diagnostic.attachNote(it->second.getLoc()) << "the other shard is here";
      return diagnostic;
    }
    shardsOfTable[shard.getTableAttr().getAttr()].push_back(shard);
  }
  for (auto &[table, shards] : shardsOfTable)
    if (failed(verifyOneRoute(shards)) || failed(verifyOneSync(shards)) ||
        failed(verifyNoOverlap(shards)))
      return failure();
  return success();
}

LogicalResult PlanOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (symbols.lookupNearestSymbolFrom<TopologyOp>(*this, getTopologyAttr())) {
    Dialect *dialect = (*this)->getDialect();
    if (auto *listener = dialect->getRegisteredInterface<PlanListener>())
      listener->planVerified(*this);
    return success();
  }
  return emitOpError("'") << neuroshard::printable(getTopology())
                          << "' is not a topology";
}

//===----------------------------------------------------------------------===//
// ShardOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyRange(ShardOp op, StringRef what, int64_t begin,
                                 int64_t end) {
  if (begin >= 0 && begin < end)
    return success();
  return op.emitOpError(what) << " must be a non-empty range from 0, got: ["
                              << begin << ", " << end << ")";
}

LogicalResult ShardOp::verify() {
  if (getName().empty())
    return emitOpError("name must not be empty");
  if (failed(verifyRange(*this, "rows", getRowBegin(), getRowEnd())) ||
      failed(verifyRange(*this, "columns", getColBegin(), getColEnd())))
    return failure();
  if (getColBegin() % kColumnAlignment != 0)
    return emitOpError("inner column boundary must be a multiple of ")
           << kColumnAlignment << ", got: " << getColBegin();
  if (std::string error = cacheError(getTier(), getCacheSpec(), getNumRows(),
                                     static_cast<int64_t>(getDevices().size()));
      !error.empty())
    return emitOpError() << error;
  if (std::string error =
          syncError(getSyncEvery(), static_cast<int64_t>(getDevices().size()));
      !error.empty())
    return emitOpError() << error;
  return verifyDeviceList(*this, getDevices());
}

bool ShardOp::isReplicated(TableOp table, TopologyOp topology) {
  return isWholeOnAll({getNumRows(), getWidth()},
                      {table.getRows(), table.getDim()},
                      static_cast<int64_t>(getDevices().size()),
                      topology.getNumDevices()) &&
         getSyncEvery() == 0;
}

LogicalResult ShardOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = resolveTable(*this, getTableAttr(), symbols);
  if (failed(table))
    return failure();
  if (getRowEnd() > table->getRows() || getColEnd() > table->getDim()) {
    InFlightDiagnostic diagnostic =
        emitOpError("must lie inside its table of ")
        << table->getRows() << " x " << table->getDim() << ", got rows ["
        << getRowBegin() << ", " << getRowEnd() << ") and columns ["
        << getColBegin() << ", " << getColEnd() << ")";
    diagnostic.attachNote(table->getLoc()) << "the table is defined here";
    return diagnostic;
  }
  if (getColEnd() != table->getDim() && getColEnd() % kColumnAlignment != 0)
    return emitOpError("inner column boundary must be a multiple of ")
           << kColumnAlignment << ", got: " << getColEnd();
  return verifyDevices(*this, getDevices(), symbols);
}

//===----------------------------------------------------------------------===//
// PinOp
//===----------------------------------------------------------------------===//

LogicalResult PinOp::verify() { return verifyDeviceList(*this, getDevices()); }

LogicalResult PinOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(resolveTable(*this, getTableAttr(), symbols)))
    return failure();
  return verifyDevices(*this, getDevices(), symbols);
}
