//===- IRToProblem.cpp - The planning problem that a module states --------===//

#include "neuroshard/Transforms/PlannerConversion.h"

#include "DeviceClassAttrs.h"
#include "PlanningAttr.h"
#include "StatisticsAttrs.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Limits.h"
#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace neuroshard;

using ir::LookupOp;
using ir::NeuroShardDialect;
using ir::PinOp;
using ir::PlanOp;
using ir::ShardOp;
using ir::TableOp;
using ir::TopologyOp;

namespace {

Table tableFrom(TableOp op) {
  Table table;
  table.name = op.getSymName().str();
  table.rows = op.getRows();
  table.dim = op.getDim();
  table.elementType = elementTypeOf(op.getElementType());
  if (op.getOptimizer())
    table.optimizer = op.getOptimizer()->getOptimizer();
  table.hashed = op.getHashed();
  if (op.getAccess())
    table.access = accessFrom(*op.getAccess());
  return table;
}

class ProblemReader {
public:
  explicit ProblemReader(ModuleOp module) : module(module) {}

  FailureOr<ShardingProblem> read();

private:
  LogicalResult readLookup(LookupOp op);
  void widenBatchTypes(LookupOp op);
  std::string uniqueName(const std::string &feature, const std::string &table);

  ModuleOp module;
  ShardingProblem problem;
  TableIndex tableOfSymbol;
  llvm::StringMap<int> timesUsed;
};

/// One feature of the IR may be looked up in several tables, and two inputs may
/// have features of one name; for the planner each lookup is a feature.
std::string ProblemReader::uniqueName(const std::string &feature,
                                      const std::string &table) {
  std::string name = feature;
  if (timesUsed[name]++ == 0)
    return name;
  name += "@" + table;
  const std::string base = name;
  while (timesUsed[name]++ != 0)
    name = base + "#" + std::to_string(timesUsed[base]);
  return name;
}

void ProblemReader::widenBatchTypes(LookupOp op) {
  bool first = problem.features.empty();
  Batch &batch = problem.batch;
  bool wideIds = op.getIds().getType().getIdType().isInteger(64);
  if (first || wideIds)
    batch.idType = wideIds ? IdType::I64 : IdType::I32;
  ElementType type = elementTypeOf(op.getType().getElementType());
  if (first || elementBytes(type) > elementBytes(batch.outputType))
    batch.outputType = type;
}

LogicalResult ProblemReader::readLookup(LookupOp op) {
  auto table = tableOfSymbol.find(op.getTableAttr().getAttr());
  if (table == tableOfSymbol.end())
    return op.emitOpError("table '")
           << printable(op.getTable()) << "' is not a table of the module";
  widenBatchTypes(op);
  Feature feature;
  feature.table = table->second;
  feature.name = uniqueName(op.getFeature().str(), op.getTable().str());
  feature.pooling = op.getPooling();
  feature.weighted = op.getWeighted();
  if (std::optional<ir::FeatureAttr> stats = op.getStats())
    readStatistics(*stats, feature);
  problem.features.push_back(std::move(feature));
  return success();
}

FailureOr<ShardingProblem> ProblemReader::read() {
  for (TableOp op : module.getOps<TableOp>()) {
    tableOfSymbol.try_emplace(op.getSymNameAttr(),
                              static_cast<int>(problem.tables.size()));
    problem.tables.push_back(tableFrom(op));
  }
  WalkResult walked = module.walk([&](LookupOp op) {
    return failed(readLookup(op)) ? WalkResult::interrupt()
                                  : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return mlir::failure();
  if (auto batch =
          module->getAttrOfType<IntegerAttr>(NeuroShardDialect::kBatchAttrName))
    problem.batch.globalSize = batch.getInt();
  Batch typesWithoutLookups;
  if (failed(readPlanning(module, tableOfSymbol, problem, typesWithoutLookups)))
    return mlir::failure();
  if (problem.mode == StepMode::Inference)
    problem = served(std::move(problem));
  // What lookups say goes first; writePlanning() does the same.
  if (problem.features.empty()) {
    problem.batch.idType = typesWithoutLookups.idType;
    problem.batch.outputType = typesWithoutLookups.outputType;
  }
  return std::move(problem);
}

LogicalResult readDevices(TopologyOp op, Topology &topology) {
  // Checked before the vector grows, and run by run: a sum could overflow.
  int64_t room = kMaxDevices;
  for (auto run : op.getDevices().getAsRange<ir::DevicesAttr>()) {
    room -= std::min(run.getCount(), kMaxDevices + 1);
    if (room < 0 || run.getHost() >= kMaxDevices)
      return op.emitOpError("must have at most ")
             << kMaxDevices << " devices and hosts";
    llvm::StringRef name = run.getDeviceClass().getValue();
    const DeviceClass *deviceClass = findDeviceClass(topology, name);
    if (!deviceClass)
      return op.emitOpError("unknown device class '")
             << printable(name) << "'"
             << knownDeviceClasses(name.str(), topology.ownClasses);
    Device device;
    device.deviceClass = name.str();
    device.memoryBytes =
        run.getMemoryBytes().value_or(deviceClass->memoryBytes);
    device.host = static_cast<int>(run.getHost());
    device.reserves = {run.getDenseReserve(), run.getFragmentationReserve(),
                       run.getCommunicatorReserve()};
    topology.devices.insert(topology.devices.end(),
                            static_cast<size_t>(run.getCount()), device);
  }
  return success();
}

/// Without `host_memory`, hosts have what the class of their devices says.
void readHosts(TopologyOp op, Topology &topology) {
  if (std::optional<ArrayRef<int64_t>> memory = op.getHostMemory()) {
    for (int64_t bytes : *memory)
      topology.hosts.push_back({bytes});
    return;
  }
  for (const Device &device : topology.devices) {
    auto host = static_cast<size_t>(device.host);
    if (topology.hosts.size() <= host)
      topology.hosts.resize(host + 1);
    topology.hosts[host].memoryBytes =
        findDeviceClass(topology, device.deviceClass)->hostMemoryBytes;
  }
}

void readDisks(TopologyOp op, Topology &topology) {
  if (!op.getHostDisks())
    return;
  topology.hosts.resize(
      std::max(topology.hosts.size(), op.getHostDisks()->size()));
  auto disks = op.getHostDisks()->getAsRange<ir::DiskAttr>();
  for (auto [host, disk] : llvm::zip(topology.hosts, disks))
    host.disk = {disk.getBytes(), disk.getReadsPerSecond().getValueAsDouble(),
                 disk.getBandwidthGBps().getValueAsDouble()};
}

} // namespace

FailureOr<Topology> neuroshard::topologyFromIR(TopologyOp op) {
  Topology topology;
  if (failed(readDeviceClasses(op, topology)) ||
      failed(readDevices(op, topology)))
    return mlir::failure();
  readHosts(op, topology);
  readDisks(op, topology);
  for (auto attr : op.getLevels().getAsRange<ir::LevelAttr>()) {
    TopologyLevel &level = topology.levels.emplace_back();
    level.name = attr.getName().str();
    // Group sizes are at most the number of devices: see TopologyOp::verify().
    for (int64_t size : attr.getGroups().asArrayRef())
      level.groupSizes.push_back(static_cast<int>(size));
    level.bandwidthGBps = attr.getBandwidthGBps().getValueAsDouble();
    level.latencyUs = attr.getLatencyUs().getValueAsDouble();
    level.groupBandwidthGBps = attr.getGroupBandwidthGBps().getValueAsDouble();
  }
  return topology;
}

FailureOr<ShardingProblem> neuroshard::problemFromIR(ModuleOp module) {
  return ProblemReader(module).read();
}

FailureOr<ShardingProblem> neuroshard::problemFromIR(PlanOp plan) {
  auto module = plan->getParentOfType<ModuleOp>();
  auto topologyOp = SymbolTable::lookupNearestSymbolFrom<TopologyOp>(
      plan, plan.getTopologyAttr());
  if (!module || !topologyOp)
    return emitError(plan.getLoc(),
                     "the plan must be in a module with its topology");
  FailureOr<ShardingProblem> problem = problemFromIR(module);
  FailureOr<Topology> topology = topologyFromIR(topologyOp);
  if (failed(problem) || failed(topology))
    return mlir::failure();
  problem->topology = std::move(*topology);
  problem->optimizerSemantics = plan.getSemantics();
  llvm::StringMap<int> tableOfName;
  for (auto [index, table] : llvm::enumerate(problem->tables))
    tableOfName.try_emplace(table.name, static_cast<int>(index));
  for (PinOp pin : plan.getBody().getOps<PinOp>()) {
    auto table = tableOfName.find(pin.getTable());
    if (table == tableOfName.end())
      return pin.emitOpError("table '")
             << printable(pin.getTable()) << "' is not a table of the module";
    PinConstraint &constraint = problem->constraints.pins.emplace_back();
    constraint.table = table->second;
    constraint.devices.assign(pin.getDevices().begin(), pin.getDevices().end());
  }
  return problem;
}
