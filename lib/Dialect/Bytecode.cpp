//===- Bytecode.cpp - Versions of the bytecode of the dialect -------------===//

#include "Bytecode.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace neuroshard::ir;

namespace {
struct Version : DialectVersion {
  explicit Version(uint64_t number) : number(number) {}
  uint64_t number;
};
} // namespace

void BytecodeInterface::writeVersion(DialectBytecodeWriter &writer) const {
  writer.writeVarInt(NeuroShardDialect::kBytecodeVersion);
}

std::unique_ptr<DialectVersion>
BytecodeInterface::readVersion(DialectBytecodeReader &reader) const {
  uint64_t number = 0;
  if (failed(reader.readVarInt(number)))
    return nullptr;
  if (number == 0 || number > NeuroShardDialect::kBytecodeVersion) {
    reader.emitError("neuroshard bytecode has version ")
        << number << ", this build reads versions 1 to "
        << NeuroShardDialect::kBytecodeVersion;
    return nullptr;
  }
  return std::make_unique<Version>(number);
}

/// Before version 9 distributed types had the plan; now the function that
/// suspends such values names it.
static LogicalResult namePlan(SuspendOp suspend) {
  if (llvm::none_of(suspend.getValues().getTypes(), llvm::IsaPred<DistType>))
    return success();
  auto function = suspend->getParentOfType<FunctionOpInterface>();
  Operation *scope =
      function ? SymbolTable::getNearestSymbolTable(function) : nullptr;
  // An op of an unknown dialect may be a symbol table or not.
  if (!scope)
    return success();
  SmallVector<PlanOp> plans(scope->getRegion(0).getOps<PlanOp>());
  if (plans.size() != 1)
    return suspend.emitOpError("has values that a plan distributes; bytecode "
                               "before version 9 is read where the module has "
                               "one plan, got: ")
           << plans.size();
  function->setAttr(NeuroShardDialect::kPlanAttrName,
                    FlatSymbolRefAttr::get(plans.front().getSymNameAttr()));
  return success();
}

LogicalResult
BytecodeInterface::upgradeFromVersion(Operation *top,
                                      const DialectVersion &version) const {
  // What else older versions lack is read as its default.
  if (static_cast<const Version &>(version).number >= 9)
    return success();
  WalkResult result = top->walk([](SuspendOp suspend) {
    return failed(namePlan(suspend)) ? WalkResult::interrupt()
                                     : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The version that is read; the current one where nothing says.
static uint64_t versionOf(DialectBytecodeReader &reader) {
  FailureOr<const DialectVersion *> version =
      reader.getDialectVersion<NeuroShardDialect>();
  return succeeded(version) ? static_cast<const Version *>(*version)->number
                            : NeuroShardDialect::kBytecodeVersion;
}

LogicalResult ShardOp::readProperties(DialectBytecodeReader &reader,
                                      OperationState &state) {
  auto &shard = state.getOrAddProperties<Properties>();
  if (failed(reader.readAttribute(shard.col_begin)) ||
      failed(reader.readAttribute(shard.col_end)) ||
      failed(reader.readAttribute(shard.devices)) ||
      failed(reader.readAttribute(shard.name)) ||
      failed(reader.readAttribute(shard.row_begin)) ||
      failed(reader.readAttribute(shard.row_end)) ||
      failed(reader.readAttribute(shard.table)) ||
      failed(reader.readOptionalAttribute(shard.tier)))
    return failure();
  uint64_t version = versionOf(reader);
  shard.route = RouteAttr::get(reader.getContext(), Route::Auto);
  if (version >= 2 && failed(reader.readOptionalAttribute(shard.route)))
    return failure();
  Builder builder(reader.getContext());
  shard.sync_every = builder.getI64IntegerAttr(0);
  if (version >= 3) {
    if (failed(reader.readOptionalAttribute(shard.cache)) ||
        failed(reader.readOptionalAttribute(shard.policy)))
      return failure();
    return version >= 8 ? reader.readOptionalAttribute(shard.sync_every)
                        : success();
  }
  shard.cache = builder.getI64IntegerAttr(0);
  shard.policy = CachePolicyAttr::get(reader.getContext(), CachePolicy::Lru);
  return success();
}

void ShardOp::writeProperties(DialectBytecodeWriter &writer) {
  Properties &shard = getProperties();
  writer.writeAttribute(shard.col_begin);
  writer.writeAttribute(shard.col_end);
  writer.writeAttribute(shard.devices);
  writer.writeAttribute(shard.name);
  writer.writeAttribute(shard.row_begin);
  writer.writeAttribute(shard.row_end);
  writer.writeAttribute(shard.table);
  writer.writeOptionalAttribute(shard.tier);
  writer.writeOptionalAttribute(shard.route);
  writer.writeOptionalAttribute(shard.cache);
  writer.writeOptionalAttribute(shard.policy);
  writer.writeOptionalAttribute(shard.sync_every);
}

LogicalResult TopologyOp::readProperties(DialectBytecodeReader &reader,
                                         OperationState &state) {
  auto &topology = state.getOrAddProperties<Properties>();
  if (failed(reader.readAttribute(topology.devices)) ||
      failed(reader.readOptionalAttribute(topology.host_memory)) ||
      failed(reader.readAttribute(topology.levels)) ||
      failed(reader.readAttribute(topology.sym_name)))
    return failure();
  if (versionOf(reader) < 4)
    return success();
  return reader.readOptionalAttribute(topology.host_disks);
}

void TopologyOp::writeProperties(DialectBytecodeWriter &writer) {
  Properties &topology = getProperties();
  writer.writeAttribute(topology.devices);
  writer.writeOptionalAttribute(topology.host_memory);
  writer.writeAttribute(topology.levels);
  writer.writeAttribute(topology.sym_name);
  writer.writeOptionalAttribute(topology.host_disks);
}
