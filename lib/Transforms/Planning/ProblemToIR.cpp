//===- ProblemToIR.cpp - A planning problem as a logical module -----------===//

#include "neuroshard/Transforms/PlannerConversion.h"

#include "DeviceClassAttrs.h"
#include "PlanningAttr.h"
#include "StatisticsAttrs.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Model/DeviceClass.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace neuroshard;

using ir::JaggedType;
using ir::LookupOp;
using ir::NeuroShardDialect;
using ir::PinOp;
using ir::PlanOp;
using ir::TableOp;
using ir::TopologyOp;

namespace {

/// The features of one jagged argument, which is weighted if one of them is:
/// other lookups ignore the weights of their ids.
struct Input {
  SmallVector<StringAttr> features;
  bool weighted = false;
};

/// By own batch size (0: the module's), as the planner groups features into
/// exchanges.
using Inputs = llvm::MapVector<int64_t, Input>;

/// Runs of equal devices; what the class says by default is left out.
ArrayAttr devicesAttr(const Topology &topology, MLIRContext *context) {
  SmallVector<Attribute> runs;
  for (size_t begin = 0, end; begin < topology.devices.size(); begin = end) {
    const Device &device = topology.devices[begin];
    end = begin + 1;
    while (end < topology.devices.size() && topology.devices[end] == device)
      ++end;
    const DeviceClass *deviceClass =
        findDeviceClass(topology, device.deviceClass);
    std::optional<int64_t> memory;
    if (!deviceClass || deviceClass->memoryBytes != device.memoryBytes)
      memory = device.memoryBytes;
    runs.push_back(ir::DevicesAttr::get(
        context, static_cast<int64_t>(end - begin),
        StringAttr::get(context, device.deviceClass), device.host, memory,
        device.reserves.denseBytes, device.reserves.fragmentationBytes,
        device.reserves.communicatorBytes));
  }
  return ArrayAttr::get(context, runs);
}

ArrayAttr levelsAttr(const Topology &topology, Builder &builder) {
  SmallVector<Attribute> levels;
  for (const TopologyLevel &level : topology.levels) {
    SmallVector<int64_t> groups(level.groupSizes.begin(),
                                level.groupSizes.end());
    levels.push_back(ir::LevelAttr::get(
        builder.getContext(), builder.getStringAttr(level.name),
        builder.getDenseI64ArrayAttr(groups),
        builder.getF64FloatAttr(level.bandwidthGBps),
        builder.getF64FloatAttr(level.latencyUs),
        builder.getF64FloatAttr(level.groupBandwidthGBps)));
  }
  return builder.getArrayAttr(levels);
}

/// Null where no host says anything of its disks.
ArrayAttr disksAttr(const Topology &topology, Builder &builder) {
  SmallVector<Attribute> disks;
  for (const Host &host : topology.hosts)
    disks.push_back(
        ir::DiskAttr::get(builder.getContext(), host.disk.bytes,
                          builder.getF64FloatAttr(host.disk.readsPerSecond),
                          builder.getF64FloatAttr(host.disk.bandwidthGBps)));
  bool isKnown = std::ranges::any_of(
      topology.hosts, [](const Host &host) { return host.disk != Disk(); });
  return isKnown ? builder.getArrayAttr(disks) : ArrayAttr();
}

class ModuleWriter {
public:
  ModuleWriter(const ShardingProblem &problem, Location loc)
      : problem(problem), builder(loc.getContext()), loc(loc),
        module(ModuleOp::create(loc)), symbols(*module) {}

  FailureOr<OwningOpRef<ModuleOp>> write();

private:
  void writeTables();
  LogicalResult writePartialPlan(TopologyOp topology);
  void writeFunction();
  Inputs inputs();
  Value writeLookup(const Feature &feature, Value ids, Type elementType);

  const ShardingProblem &problem;
  OpBuilder builder;
  Location loc;
  OwningOpRef<ModuleOp> module;
  /// Tables are inserted first and keep their names; later symbols get unique
  /// ones.
  SymbolTable symbols;
};

void ModuleWriter::writeTables() {
  MLIRContext *context = builder.getContext();
  builder.setInsertionPointToEnd(module->getBody());
  for (const Table &table : problem.tables) {
    auto op =
        TableOp::create(builder, loc, table.name, table.rows, table.dim,
                        typeOf(table.elementType, context),
                        isQuantized(table.elementType)
                            ? ir::OptimizerAttr()
                            : ir::OptimizerAttr::get(context, table.optimizer));
    if (table.access)
      op.setAccessAttr(accessAttr(*table.access, context));
    op.setHashed(table.hashed);
    symbols.insert(op);
  }
}

LogicalResult ModuleWriter::writePartialPlan(TopologyOp topology) {
  const Constraints &constraints = problem.constraints;
  if (constraints.pins.empty() && constraints.fixedShards.empty())
    return success();
  if (!topology)
    return emitError(loc, "constraints: pins and fixed shards name devices, "
                          "and the workload has no topology; add one");
  PlanOp plan =
      createPlan(*module, "plan", topology, problem.optimizerSemantics);
  plan->remove();
  symbols.insert(plan);
  builder.setInsertionPointToEnd(&plan.getBody().front());
  for (const PinConstraint &pin : constraints.pins) {
    SmallVector<int64_t> devices(pin.devices.begin(), pin.devices.end());
    const Table &table = problem.tables[static_cast<size_t>(pin.table)];
    PinOp::create(builder, loc, table.name, devices);
  }
  ShardingPlan fixed;
  fixed.shards = constraints.fixedShards;
  fixed.optimizerSemantics = problem.optimizerSemantics;
  return planToIR(fixed, plan);
}

Inputs ModuleWriter::inputs() {
  Inputs result;
  for (const Feature &feature : problem.features) {
    Input &input = result[feature.batch];
    input.features.push_back(builder.getStringAttr(feature.name));
    input.weighted |= feature.weighted;
  }
  return result;
}

Value ModuleWriter::writeLookup(const Feature &feature, Value ids,
                                Type elementType) {
  const Table &table = problem.tables[static_cast<size_t>(feature.table)];
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, table.dim}, elementType);
  return LookupOp::create(builder, loc, type, feature.pooling, table.name, ids,
                          builder.getStringAttr(feature.name), feature.weighted,
                          /*padding_idx=*/IntegerAttr(),
                          featureAttr(feature, builder));
}

void ModuleWriter::writeFunction() {
  MLIRContext *context = builder.getContext();
  Inputs grouped = inputs();
  unsigned idBits = problem.batch.idType == IdType::I32 ? 32 : 64;
  SmallVector<Type> argumentTypes;
  for (const auto &[batch, input] : grouped)
    argumentTypes.push_back(JaggedType::get(context, input.features,
                                            builder.getIntegerType(idBits),
                                            input.weighted));
  auto function = func::FuncOp::create(
      loc, "forward", builder.getFunctionType(argumentTypes, {}));
  symbols.insert(function);
  builder.setInsertionPointToStart(function.addEntryBlock());
  llvm::DenseMap<int64_t, Value> argumentOfBatch;
  for (auto [item, argument] : llvm::zip(grouped, function.getArguments()))
    argumentOfBatch[item.first] = argument;
  Type elementType = typeOf(problem.batch.outputType, context);
  SmallVector<Value> results;
  for (const Feature &feature : problem.features)
    results.push_back(
        writeLookup(feature, argumentOfBatch[feature.batch], elementType));
  func::ReturnOp::create(builder, loc, results);
  function.setType(
      builder.getFunctionType(argumentTypes, TypeRange(ValueRange(results))));
}

FailureOr<OwningOpRef<ModuleOp>> ModuleWriter::write() {
  writeTables();
  TopologyOp topology;
  if (!problem.topology.devices.empty())
    topology = topologyToIR(problem.topology, *module);
  if (failed(writePartialPlan(topology)))
    return failure();
  writeFunction();
  planningToIR(problem, *module);
  return std::move(module);
}

} // namespace

FailureOr<OwningOpRef<ModuleOp>>
neuroshard::problemToIR(const ShardingProblem &problem, Location loc) {
  loc.getContext()->loadDialect<NeuroShardDialect, func::FuncDialect>();
  return ModuleWriter(problem, loc).write();
}

TopologyOp neuroshard::topologyToIR(const Topology &topology, ModuleOp module) {
  OpBuilder builder(module.getContext());
  SmallVector<int64_t> hostMemory;
  for (const Host &host : topology.hosts)
    hostMemory.push_back(host.memoryBytes);
  auto op = TopologyOp::create(
      builder, module.getLoc(), builder.getStringAttr("cluster"),
      devicesAttr(topology, builder.getContext()),
      levelsAttr(topology, builder), builder.getDenseI64ArrayAttr(hostMemory),
      disksAttr(topology, builder));
  writeDeviceClasses(topology, op);
  SymbolTable(module).insert(op, module.getBody()->begin());
  return op;
}

void neuroshard::planningToIR(const ShardingProblem &problem, ModuleOp module) {
  Builder builder(module.getContext());
  if (problem.batch.globalSize > 0)
    module->setAttr(NeuroShardDialect::kBatchAttrName,
                    builder.getI64IntegerAttr(problem.batch.globalSize));
  if (DictionaryAttr planning = writePlanning(problem, module.getContext()))
    module->setAttr(NeuroShardDialect::kPlanningAttrName, planning);
  else
    module->removeAttr(NeuroShardDialect::kPlanningAttrName);
}
