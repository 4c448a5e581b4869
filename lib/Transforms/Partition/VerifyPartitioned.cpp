//===- VerifyPartitioned.cpp - Invariants of the partitioned level --------===//

#include "Levels.h"
#include "Planning/PlacedTables.h"
#include "VerifyHandles.h"
#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace neuroshard {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// Exchange and position of a lookup.
using ExchangeLookup = std::pair<StringAttr, int64_t>;

class PartitionedVerifier {
public:
  PartitionedVerifier(ModuleOp module, const PlacedTables &placement,
                      bool training);

  LogicalResult verifyPrograms();

private:
  LogicalResult verifyProgram(DeviceProgramOp program);
  LogicalResult verifySlot(LocalTableOp slot, size_t index, int64_t device);
  LogicalResult verifyStructure(LocalTableOp slot, ShardOp shard);
  LogicalResult refuseUnknownShard(LocalTableOp slot, StringAttr name);
  LogicalResult verifyLookups(DeviceProgramOp program, size_t index);
  LogicalResult verifyLookup(LocalLookupOp op, LocalTableOp slot,
                             ExchangeLookup bound, size_t index);
  ShardOp shardOf(LocalTableOp slot, size_t index) {
    return shards.lookup(cast<StringAttr>(slot.getShards()[index]));
  }

  ModuleOp module;
  const PlacedTables &placement;
  bool training;
  llvm::DenseMap<StringAttr, ShardOp> shards;
  llvm::DenseMap<StringAttr, ExchangeOp> exchanges;
  /// Lookups of each table in all exchanges.
  llvm::DenseMap<StringAttr, SmallVector<ExchangeLookup>> lookupsOfTable;
  /// Number of shards that each device has.
  SmallVector<int64_t> numShards;
};

PartitionedVerifier::PartitionedVerifier(ModuleOp module,
                                         const PlacedTables &placement,
                                         bool training)
    : module(module), placement(placement), training(training),
      numShards(TopologyOp(placement.topology).getNumDevices()) {
  for (auto shard : PlanOp(placement.plan).getOps<ShardOp>()) {
    shards[shard.getNameAttr()] = shard;
    for (int64_t device : shard.getDevices())
      ++numShards[device];
  }
  for (auto exchange : module.getOps<ExchangeOp>()) {
    exchanges[exchange.getSymNameAttr()] = exchange;
    for (auto [position, lookup] :
         llvm::enumerate(exchange.getLookups().getAsRange<LookupAttr>()))
      lookupsOfTable[lookup.getTable().getAttr()].emplace_back(
          exchange.getSymNameAttr(), position);
  }
}

LogicalResult PartitionedVerifier::verifyStructure(LocalTableOp slot,
                                                   ShardOp shard) {
  const TablePlacement &placed = placement[shard.getTableAttr().getAttr()];
  TableOp table = placed.table;
  OptimizerAttr optimizer =
      training ? table.getOptimizerAttr() : OptimizerAttr();
  bool same = slot.getDim() == shard.getWidth() &&
              slot.getElementType() == table.getElementType() &&
              slot.getTableDim() == table.getDim() &&
              slot.getOptimizerAttr() == optimizer &&
              slot.getTwoPhase() == (training && placed.twoPhase);
  if (same)
    return success();
  InFlightDiagnostic diagnostic =
      slot.emitOpError("has another dim, element type, table dim, optimizer or "
                       "number of phases than shard ")
      << shard.getNameAttr();
  diagnostic.attachNote(shard.getLoc()) << "the shard is here";
  diagnostic.attachNote(table.getLoc()) << "its table is here";
  return diagnostic;
}

LogicalResult PartitionedVerifier::refuseUnknownShard(LocalTableOp slot,
                                                      StringAttr name) {
  PlanOp plan = placement.plan;
  std::vector<std::string> names;
  for (auto shard : plan.getOps<ShardOp>())
    names.push_back(shard.getName().str());
  InFlightDiagnostic diagnostic = slot.emitOpError("binds shard ")
                                  << name << ", which the plan does not have"
                                  << didYouMean(name.getValue(), names);
  diagnostic.attachNote(plan.getLoc()) << "the plan is here";
  return diagnostic;
}

LogicalResult PartitionedVerifier::verifySlot(LocalTableOp slot, size_t index,
                                              int64_t device) {
  ShardOp shard = shardOf(slot, index);
  if (!shard)
    return refuseUnknownShard(slot, cast<StringAttr>(slot.getShards()[index]));
  if (llvm::is_contained(shard.getDevices(), device))
    return verifyStructure(slot, shard);
  InFlightDiagnostic diagnostic = slot.emitOpError("binds shard ")
                                  << shard.getNameAttr() << " on device "
                                  << device << ", which lies on [";
  llvm::interleaveComma(shard.getDevices(), diagnostic);
  diagnostic << "]";
  diagnostic.attachNote(shard.getLoc()) << "the shard is here";
  return diagnostic;
}

LogicalResult PartitionedVerifier::verifyLookup(LocalLookupOp op,
                                                LocalTableOp slot,
                                                ExchangeLookup bound,
                                                size_t index) {
  ExchangeOp exchange = exchanges.lookup(bound.first);
  auto lookup = cast<LookupAttr>(exchange.getLookups()[bound.second]);
  FlatSymbolRefAttr table = shardOf(slot, index).getTableAttr();
  bool pooled = lookup.getPooling() != Pooling::None;
  if (lookup.getTable() == table && op.getPooled() == pooled &&
      op.getWeighted() == lookup.getWeighted())
    return success();
  InFlightDiagnostic diagnostic =
      op.emitOpError("on a slot of table ")
      << table << " differs in table, pooling or weights from the lookup "
      << lookup << " that it binds";
  diagnostic.attachNote(exchange.getLoc()) << "the exchange is here";
  return diagnostic;
}

/// The i-th device binds each lookup of each of its slots exactly once.
LogicalResult PartitionedVerifier::verifyLookups(DeviceProgramOp program,
                                                 size_t index) {
  SmallVector<LocalTableOp> slots(program.getOps<LocalTableOp>());
  llvm::DenseMap<std::pair<int64_t, ExchangeLookup>, LocalLookupOp> bound;
  SmallVector<size_t> numLookups(slots.size());
  for (auto op : program.getOps<LocalLookupOp>()) {
    int64_t slot = op.getSlot();
    ExchangeLookup use = {op.getExchangeAttr().getAttr(), op.getBinds()[index]};
    if (failed(verifyLookup(op, slots[slot], use, index)))
      return failure();
    auto [other, inserted] = bound.try_emplace({slot, use}, op);
    if (!inserted) {
      InFlightDiagnostic diagnostic =
          op.emitOpError("binds lookup ")
          << use.second << " of its exchange to its slot a second time";
      diagnostic.attachNote(other->second.getLoc()) << "the first is here";
      return diagnostic;
    }
    ++numLookups[slot];
  }
  for (auto [slot, count] : llvm::zip(slots, numLookups)) {
    StringAttr table = shardOf(slot, index).getTableAttr().getAttr();
    size_t expected = lookupsOfTable[table].size();
    if (count != expected)
      return slot.emitOpError("has ")
             << count << " lookups, the exchanges have " << expected
             << " of its table '" << printable(table.getValue()) << "'";
  }
  return success();
}

LogicalResult PartitionedVerifier::verifyProgram(DeviceProgramOp program) {
  for (auto [index, device] : llvm::enumerate(program.getDevices())) {
    llvm::DenseMap<Attribute, LocalTableOp> bound;
    for (auto slot : program.getOps<LocalTableOp>()) {
      if (failed(verifySlot(slot, index, device)))
        return failure();
      Attribute name = slot.getShards()[index];
      auto [other, inserted] = bound.try_emplace(name, slot);
      if (inserted)
        continue;
      InFlightDiagnostic diagnostic = slot.emitOpError("binds shard ")
                                      << name << " on device " << device
                                      << " a second time";
      diagnostic.attachNote(other->second.getLoc()) << "the first is here";
      return diagnostic;
    }
    if (static_cast<int64_t>(bound.size()) != numShards[device])
      return program.emitOpError("binds ")
             << bound.size() << " shards on device " << device
             << ", the plan has " << numShards[device] << " there";
    if (failed(verifyLookups(program, index)))
      return failure();
  }
  return success();
}

LogicalResult PartitionedVerifier::verifyPrograms() {
  SmallVector<DeviceProgramOp> programOf(numShards.size());
  for (auto program : module.getOps<DeviceProgramOp>()) {
    for (int64_t device : program.getDevices()) {
      if (device >= static_cast<int64_t>(numShards.size()))
        return program.emitOpError("is for device ")
               << device << ", the topology has " << numShards.size();
      if (DeviceProgramOp other = programOf[device]) {
        InFlightDiagnostic diagnostic =
            program.emitOpError("is a second program for device ") << device;
        diagnostic.attachNote(other.getLoc()) << "the first is here";
        return diagnostic;
      }
      programOf[device] = program;
    }
    if (failed(verifyProgram(program)))
      return failure();
  }
  for (auto [device, program] : llvm::enumerate(programOf))
    if (!program)
      return emitError(module.getLoc(), "device ")
             << device << " has no program; every device of the topology "
             << "needs one, if only to take part in exchanges";
  return success();
}

LogicalResult verifyDevices(ModuleOp module) {
  bool training =
      module.lookupSymbol(kGradientsName) || module.lookupSymbol(kUpdateName);
  for (llvm::StringRef name : kStepNames) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!training && (name == kGradientsName || name == kUpdateName))
      continue;
    if (!function && name == kJoinedWaitName)
      continue;
    if (!function)
      return emitError(module.getLoc(), "the module has no function '@")
             << name << "'";
    if (function.getNumArguments() == 0 ||
        !isa<DeviceType>(function.getArgumentTypes().front()))
      return function.emitError("'@")
             << name << "' must take the device it runs on first";
  }
  return success();
}

/// The plan that all exchanges are for.
FailureOr<PlanOp> verifyOnePlan(ModuleOp module) {
  auto ops = module.getOps<ExchangeOp>();
  if (ops.empty())
    return emitError(
        module.getLoc(),
        "the module has no exchange; run neuroshard-partition first");
  ExchangeOp first = *ops.begin();
  for (ExchangeOp exchange : ops) {
    if (exchange.getPlan() == first.getPlan())
      continue;
    InFlightDiagnostic diagnostic = exchange.emitOpError(
        "must be for the same plan as the other exchanges");
    diagnostic.attachNote(first.getLoc()) << "another exchange is here";
    return diagnostic;
  }
  return module.lookupSymbol<PlanOp>(first.getPlan());
}

bool holdsDistributed(Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    return llvm::any_of(pending.getTypes(), llvm::IsaPred<DistType>);
  if (auto context = dyn_cast<ContextType>(type))
    return llvm::any_of(context.getTypes(), llvm::IsaPred<DistType>);
  return isa<DistType>(type);
}

struct VerifyPartitioned
    : neuroshard::impl::VerifyPartitionedBase<VerifyPartitioned> {
  using VerifyPartitionedBase::VerifyPartitionedBase;

  LogicalResult verify() {
    ModuleOp module = getOperation();
    if (failed(verifyLevel(module, "partitioned", [](Operation *op) {
          return isLogicalStep(op) || isSharded(op) || isa<DiscardOp>(op) ||
                 llvm::any_of(op->getOperandTypes(), holdsDistributed);
        })))
      return failure();
    FailureOr<PlanOp> plan = verifyOnePlan(module);
    if (failed(plan) || failed(verifyDevices(module)) ||
        failed(verifyHandles(module)))
      return failure();
    FailureOr<PlacedTables> placement = PlacedTables::of(*plan);
    if (failed(placement))
      return failure();
    bool training = module.lookupSymbol(kUpdateName) != nullptr;
    return PartitionedVerifier(module, *placement, training).verifyPrograms();
  }

  void runOnOperation() override {
    if (failed(verify()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
