//===- IRToManifest.cpp - From partitioned IR to a manifest ---------------===//

#include "neuroshard/Conversion/Manifest/IRToManifest.h"

#include "DescribeFunctions.h"

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Model/EnumNames.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace neuroshard {

/// Numbers of the ops of a kind, by symbol.
using Numbers = llvm::DenseMap<StringAttr, int64_t>;

template <typename OpT> static Numbers numberSymbols(ModuleOp module) {
  Numbers numbers;
  for (auto [i, op] : llvm::enumerate(module.getOps<OpT>()))
    numbers[op.getSymNameAttr()] = i;
  return numbers;
}

static ExchangeSpec describe(ir::ExchangeOp op, const Numbers &tables) {
  auto input = cast<ir::JaggedType>(op.getInput());
  ExchangeSpec exchange;
  exchange.input = op.getSymName();
  exchange.idType = idTypeOf(input.getIdType());
  exchange.weighted = input.getWeighted();
  exchange.features = namesOfFeatures(input);
  for (auto [attr, result] :
       llvm::zip_equal(op.getLookups().getAsRange<ir::LookupAttr>(),
                       op.getResults().getAsValueRange<TypeAttr>())) {
    ExchangeLookup lookup;
    lookup.table = static_cast<int32_t>(tables.at(attr.getTable().getAttr()));
    lookup.feature = static_cast<int32_t>(*input.indexOf(attr.getFeature()));
    lookup.pooling = attr.getPooling();
    lookup.weighted = attr.getWeighted();
    lookup.paddingIdx = attr.getPaddingIdx();
    lookup.resultType =
        elementTypeOf(cast<ShapedType>(result).getElementType());
    exchange.lookups.push_back(lookup);
  }
  return exchange;
}

static ShardSpec describe(ir::ShardOp op, const Numbers &tables) {
  ShardSpec shard;
  shard.name = op.getName();
  shard.table = static_cast<int32_t>(tables.at(op.getTableAttr().getAttr()));
  shard.rows = {op.getRowBegin(), op.getRowEnd()};
  shard.cols = {op.getColBegin(), op.getColEnd()};
  shard.devices.assign(op.getDevices().begin(), op.getDevices().end());
  std::ranges::sort(shard.devices);
  shard.tier = op.getTier();
  shard.cache = op.getCacheSpec();
  shard.route = op.getRoute();
  shard.syncEvery = op.getSyncEvery();
  return shard;
}

namespace {
class ArtifactDescriber {
public:
  explicit ArtifactDescriber(ModuleOp module)
      : module(module), tables(numberSymbols<ir::TableOp>(module)),
        exchanges(numberSymbols<ir::ExchangeOp>(module)) {}

  FailureOr<Manifest> describeModule();

private:
  LogicalResult addPlan();
  LogicalResult addWireType();
  void addGroups(ir::TopologyOp topology);
  void addTables();
  LogicalResult addProgram(ir::DeviceProgramOp program, int64_t number);
  FailureOr<DeviceBinding> bind(ir::DeviceProgramOp program, size_t member);

  ModuleOp module;
  Numbers tables, exchanges;
  llvm::StringMap<int64_t> shards;
  Manifest result;
};
} // namespace

LogicalResult ArtifactDescriber::addPlan() {
  auto users = module.getOps<ir::ExchangeOp>();
  if (users.empty())
    return emitError(module.getLoc(),
                     "an artifact is made from the plan of the "
                     "exchanges, of which there are none");
  auto plan = module.lookupSymbol<ir::PlanOp>((*users.begin()).getPlanAttr());
  auto topology =
      module.lookupSymbol<ir::TopologyOp>(plan.getTopologyAttr().getAttr());
  result.numDevices = static_cast<int32_t>(topology.getNumDevices());
  addGroups(topology);
  result.optimizerSemantics = plan.getSemantics();
  for (auto shard : plan.getBody().getOps<ir::ShardOp>()) {
    shards[shard.getName()] = result.shards.size();
    result.shards.push_back(describe(shard, tables));
  }
  return success();
}

void ArtifactDescriber::addGroups(ir::TopologyOp topology) {
  auto levels = topology.getLevels().getAsRange<ir::LevelAttr>();
  ir::LevelAttr innermost = *std::prev(levels.end());
  result.groups = groupsOfSizes(innermost.getGroups().asArrayRef().vec());
}

/// Checks the value again: if the input is partitioned IR, no planner has read
/// it.
LogicalResult ArtifactDescriber::addWireType() {
  auto planning = module->getAttrOfType<DictionaryAttr>(
      ir::NeuroShardDialect::kPlanningAttrName);
  Attribute value = planning ? planning.get("wire_type") : Attribute();
  if (!value)
    return success();
  auto name = dyn_cast<StringAttr>(value);
  std::optional<WireType> type =
      name ? parseWireType(name.getValue()) : std::nullopt;
  if (!type)
    return emitError(module.getLoc(),
                     "'wire_type' of 'neuroshard.planning' must be ")
           << choicesOf<WireType>() << ", got: " << value;
  result.wireType = *type;
  return success();
}

/// A table keeps its optimizer, and so has state, only if a program trains it.
void ArtifactDescriber::addTables() {
  llvm::SmallDenseSet<int64_t> trained;
  module.walk([&](ir::LocalTableOp slot) {
    if (!slot.getOptimizer())
      return;
    // bind() reports names that the plan does not have.
    for (auto name : slot.getShards().getAsRange<StringAttr>())
      if (auto shard = shards.find(name.getValue()); shard != shards.end())
        trained.insert(result.shards[shard->second].table);
  });
  for (auto [i, table] : llvm::enumerate(module.getOps<ir::TableOp>())) {
    TableSpec described;
    described.name = table.getSymName();
    described.rows = table.getRows();
    described.dim = table.getDim();
    described.elementType = elementTypeOf(table.getElementType());
    if (trained.contains(i) && table.getOptimizer())
      described.optimizer = table.getOptimizer()->getOptimizer();
    result.tables.push_back(std::move(described));
  }
}

FailureOr<DeviceBinding> ArtifactDescriber::bind(ir::DeviceProgramOp program,
                                                 size_t member) {
  DeviceBinding binding;
  for (auto slot : program.getOps<ir::LocalTableOp>()) {
    auto name = cast<StringAttr>(slot.getShards()[member]);
    auto shard = shards.find(name.getValue());
    if (shard == shards.end())
      return slot.emitOpError("binds shard ")
             << name << ", which the plan does not have";
    binding.slots.push_back(static_cast<int32_t>(shard->second));
  }
  for (auto lookup : program.getOps<ir::LocalLookupOp>())
    binding.lookups.push_back(
        {static_cast<int32_t>(exchanges.at(lookup.getExchangeAttr().getAttr())),
         static_cast<int32_t>(lookup.getBinds()[member]),
         static_cast<int32_t>(lookup.getSlot())});
  return binding;
}

LogicalResult ArtifactDescriber::addProgram(ir::DeviceProgramOp program,
                                            int64_t number) {
  for (auto [member, device] : llvm::enumerate(program.getDevices())) {
    if (device >= result.numDevices)
      return program.emitOpError("is for device ")
             << device << ", the topology has " << result.numDevices;
    FailureOr<DeviceBinding> binding = bind(program, member);
    if (failed(binding))
      return failure();
    binding->program = static_cast<int32_t>(number);
    result.bindings[device] = std::move(*binding);
  }
  return success();
}

FailureOr<Manifest> ArtifactDescriber::describeModule() {
  if (failed(addPlan()) || failed(addWireType()))
    return failure();
  for (auto exchange : module.getOps<ir::ExchangeOp>())
    result.exchanges.push_back(describe(exchange, tables));
  result.bindings.resize(result.numDevices);
  for (auto [i, program] :
       llvm::enumerate(module.getOps<ir::DeviceProgramOp>()))
    if (failed(addProgram(program, i)))
      return failure();
  addTables();
  FailureOr<std::vector<FunctionSpec>> functions = describeFunctions(module);
  if (failed(functions))
    return failure();
  result.functions = std::move(*functions);
  return std::move(result);
}

FailureOr<Manifest> describeArtifact(ModuleOp module) {
  return ArtifactDescriber(module).describeModule();
}

/// Appends the tables that lowering gave the function.
static void addTableArguments(func::FuncOp function, const Numbers &tables,
                              std::vector<ValueSpec> &arguments) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto weights =
        function.getArgAttrOfType<StringAttr>(i, kWeightsArgumentAttr);
    auto state = function.getArgAttrOfType<StringAttr>(i, kStateArgumentAttr);
    if (!weights && !state)
      continue;
    auto type = cast<MemRefType>(function.getArgumentTypes()[i]);
    ValueSpec value;
    value.kind = weights ? ValueKind::Weights : ValueKind::State;
    value.type = nameOfType(type.getElementType());
    value.shape = type.getShape().vec();
    value.table = static_cast<int32_t>(tables.at(weights ? weights : state));
    if (state && arguments.back().kind == ValueKind::State &&
        arguments.back().table == value.table)
      value.state = arguments.back().state + 1;
    arguments.push_back(std::move(value));
  }
}

FailureOr<std::vector<FunctionSpec>> describeReference(ModuleOp logical,
                                                       ModuleOp lowered) {
  FailureOr<std::vector<FunctionSpec>> functions = describeFunctions(logical);
  if (failed(functions))
    return failure();
  Numbers tables = numberSymbols<ir::TableOp>(logical);
  for (FunctionSpec &function : *functions)
    addTableArguments(lowered.lookupSymbol<func::FuncOp>(function.name), tables,
                      function.arguments);
  return functions;
}

} // namespace neuroshard
