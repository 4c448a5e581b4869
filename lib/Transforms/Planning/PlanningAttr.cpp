//===- PlanningAttr.cpp - Constraints as neuroshard.planning --------------===//

#include "PlanningAttr.h"

#include "DictionaryReader.h"
#include "PlanningSnapshots.h"

#include "neuroshard/Dialect/NeuroShard.h"

using namespace mlir;
using namespace neuroshard;

using ir::NeuroShardDialect;

namespace {

void readDevices(DictionaryReader &reader, std::vector<int> &out) {
  reader.read("devices", "numbers of devices, such as array<i64: 0, 1>",
              [&](Attribute value) {
                auto devices = dyn_cast<DenseI64ArrayAttr>(value);
                if (!devices)
                  return false;
                for (int64_t device : devices.asArrayRef())
                  out.push_back(static_cast<int>(device));
                return std::equal(out.begin(), out.end(),
                                  devices.asArrayRef().begin());
              });
}

void readTableConstraint(DictionaryReader &reader, Constraints &out) {
  TableConstraint &constraint = out.tables.emplace_back();
  reader.table("table", constraint.table);
  reader.integer("min_width", constraint.minWidth);
  reader.number("cache_share", constraint.cacheShare);
  reader.integer("sync_every", constraint.syncEvery);
  reader.read("tier", "\"dram\" or \"ssd\"", [&](Attribute value) {
    auto name = dyn_cast<StringAttr>(value);
    constraint.tier = name ? parseTier(name.getValue()) : std::nullopt;
    return constraint.tier.has_value();
  });
  reader.read("allowed_kinds", "a list of " + choicesOf<ShardingKind>(),
              [&](Attribute value) {
                auto kinds = dyn_cast<ArrayAttr>(value);
                for (Attribute kind :
                     kinds ? kinds.getValue() : ArrayRef<Attribute>()) {
                  auto name = dyn_cast<StringAttr>(kind);
                  auto parsed =
                      name ? parseShardingKind(name.getValue()) : std::nullopt;
                  if (!parsed)
                    return false;
                  constraint.allowedKinds.push_back(*parsed);
                }
                return static_cast<bool>(kinds);
              });
}

void readConstraints(DictionaryReader &reader, Constraints &out) {
  reader.items("forbid", [&](DictionaryReader &item) {
    ForbidConstraint &forbid = out.forbids.emplace_back();
    item.table("table", forbid.table);
    readDevices(item, forbid.devices);
  });
  reader.tableSets("co_locate", out.coLocate);
  reader.tableSets("separate", out.separate);
  reader.items("tables",
               [&](DictionaryReader &item) { readTableConstraint(item, out); });
  reader.integer("dense_reserve_bytes", out.reserves.denseBytes);
  reader.integer("fragmentation_reserve_bytes",
                 out.reserves.fragmentationBytes);
  reader.integer("communicator_reserve_bytes", out.reserves.communicatorBytes);
}

/// Collects the entries that differ from their defaults.
class DictionaryWriter {
public:
  DictionaryWriter(const ShardingProblem &problem, MLIRContext *context)
      : problem(problem), builder(context) {}

  DictionaryAttr write();

private:
  void add(llvm::StringRef key, Attribute value) {
    entries.push_back(builder.getNamedAttr(key, value));
  }
  void addInteger(llvm::StringRef key, int64_t value) {
    add(key, builder.getI64IntegerAttr(value));
  }
  void addName(llvm::StringRef key, std::string_view value) {
    add(key, builder.getStringAttr(llvm::StringRef(value)));
  }
  Attribute table(int index) {
    return FlatSymbolRefAttr::get(
        builder.getContext(), problem.tables[static_cast<size_t>(index)].name);
  }
  void addSets(llvm::StringRef key, const std::vector<std::vector<int>> &sets);
  void addForbids();
  void addTables();
  void addDynamicIds();
  void addReserve(llvm::StringRef key, std::optional<int64_t> bytes) {
    if (bytes)
      addInteger(key, *bytes);
  }

  const ShardingProblem &problem;
  Builder builder;
  SmallVector<NamedAttribute> entries;
};

void DictionaryWriter::addSets(llvm::StringRef key,
                               const std::vector<std::vector<int>> &sets) {
  if (sets.empty())
    return;
  SmallVector<Attribute> lists;
  for (const std::vector<int> &set : sets) {
    SmallVector<Attribute> members;
    for (int index : set)
      members.push_back(table(index));
    lists.push_back(builder.getArrayAttr(members));
  }
  add(key, builder.getArrayAttr(lists));
}

void DictionaryWriter::addForbids() {
  if (problem.constraints.forbids.empty())
    return;
  SmallVector<Attribute> items;
  for (const ForbidConstraint &forbid : problem.constraints.forbids) {
    SmallVector<int64_t> devices(forbid.devices.begin(), forbid.devices.end());
    items.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("table", table(forbid.table)),
         builder.getNamedAttr("devices",
                              builder.getDenseI64ArrayAttr(devices))}));
  }
  add("forbid", builder.getArrayAttr(items));
}

void DictionaryWriter::addTables() {
  if (problem.constraints.tables.empty())
    return;
  SmallVector<Attribute> items;
  for (const TableConstraint &constraint : problem.constraints.tables) {
    SmallVector<Attribute> kinds;
    for (ShardingKind kind : constraint.allowedKinds)
      kinds.push_back(builder.getStringAttr(llvm::StringRef(toString(kind))));
    SmallVector<NamedAttribute> item = {
        builder.getNamedAttr("table", table(constraint.table)),
        builder.getNamedAttr("min_width",
                             builder.getI64IntegerAttr(constraint.minWidth))};
    if (constraint.cacheShare > 0)
      item.push_back(builder.getNamedAttr(
          "cache_share", builder.getF64FloatAttr(constraint.cacheShare)));
    if (constraint.tier)
      item.push_back(builder.getNamedAttr(
          "tier",
          builder.getStringAttr(llvm::StringRef(toString(*constraint.tier)))));
    if (constraint.syncEvery != 0)
      item.push_back(builder.getNamedAttr(
          "sync_every", builder.getI64IntegerAttr(constraint.syncEvery)));
    if (!kinds.empty())
      item.push_back(
          builder.getNamedAttr("allowed_kinds", builder.getArrayAttr(kinds)));
    items.push_back(builder.getDictionaryAttr(item));
  }
  add("tables", builder.getArrayAttr(items));
}

void DictionaryWriter::addDynamicIds() {
  SmallVector<Attribute> items;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    if (problem.tables[i].dynamicIds)
      items.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("table", table(static_cast<int>(i))),
           builder.getNamedAttr(
               "candidates",
               builder.getI64IntegerAttr(problem.tables[i].idCandidates))}));
  if (!items.empty())
    add("dynamic_ids", builder.getArrayAttr(items));
}

DictionaryAttr DictionaryWriter::write() {
  const ShardingProblem defaults;
  if (!problem.source.empty())
    addName("source", problem.source);
  if (problem.features.empty() && problem.batch.idType != IdType::I64)
    addName("id_type", toString(problem.batch.idType));
  if (problem.features.empty() && problem.batch.outputType != ElementType::F32)
    addName("output_type", toString(problem.batch.outputType));
  if (problem.batch.wireType != defaults.batch.wireType)
    addName("wire_type", toString(problem.batch.wireType));
  if (problem.batch.inputCopies != defaults.batch.inputCopies)
    addInteger("input_copies", problem.batch.inputCopies);
  if (problem.batch.backwards != defaults.batch.backwards)
    addInteger("backwards", problem.batch.backwards);
  if (problem.mode != defaults.mode)
    addName("mode", toString(problem.mode));
  if (problem.memoryModel != defaults.memoryModel)
    addName("memory_model", toString(problem.memoryModel));
  if (problem.target != defaults.target)
    addName("target", toString(problem.target));
  if (problem.optimizerSemantics != defaults.optimizerSemantics)
    addName("optimizer_semantics", toString(problem.optimizerSemantics));
  if (problem.cacheLoadFactor != 0)
    add("cache_load_factor", builder.getF64FloatAttr(problem.cacheLoadFactor));
  addForbids();
  addSets("co_locate", problem.constraints.coLocate);
  addSets("separate", problem.constraints.separate);
  addTables();
  addDynamicIds();
  const Reserves &reserves = problem.constraints.reserves;
  addReserve("dense_reserve_bytes", reserves.denseBytes);
  addReserve("fragmentation_reserve_bytes", reserves.fragmentationBytes);
  addReserve("communicator_reserve_bytes", reserves.communicatorBytes);
  if (ArrayAttr snapshots = writeSnapshots(problem, builder))
    add("snapshots", snapshots);
  return entries.empty() ? DictionaryAttr()
                         : builder.getDictionaryAttr(entries);
}

} // namespace

LogicalResult neuroshard::readPlanning(ModuleOp module,
                                       const TableIndex &tableOfSymbol,
                                       ShardingProblem &problem,
                                       Batch &typesWithoutLookups) {
  auto dictionary = module->getAttrOfType<DictionaryAttr>(
      NeuroShardDialect::kPlanningAttrName);
  if (!dictionary)
    return success();
  DictionaryReader reader(module, dictionary, tableOfSymbol);
  reader.text("source", problem.source);
  reader.name("id_type", typesWithoutLookups.idType, parseIdType);
  reader.name("output_type", typesWithoutLookups.outputType, parseElementType);
  reader.name("wire_type", problem.batch.wireType, parseWireType);
  reader.integer("input_copies", problem.batch.inputCopies);
  reader.integer("backwards", problem.batch.backwards);
  reader.name("mode", problem.mode, parseStepMode);
  reader.name("memory_model", problem.memoryModel, parseMemoryModel);
  reader.name("target", problem.target, parseTarget);
  reader.name("optimizer_semantics", problem.optimizerSemantics,
              parseOptimizerSemantics);
  reader.number("cache_load_factor", problem.cacheLoadFactor);
  reader.items("dynamic_ids", [&](DictionaryReader &item) {
    int index = -1;
    int64_t candidates = 0;
    item.table("table", index);
    item.integer("candidates", candidates);
    if (index < 0 || index >= static_cast<int>(problem.tables.size()))
      return;
    Table &table = problem.tables[static_cast<size_t>(index)];
    table.dynamicIds = true;
    table.idCandidates = candidates;
  });
  readConstraints(reader, problem.constraints);
  readSnapshots(reader, problem);
  return reader.finish();
}

DictionaryAttr neuroshard::writePlanning(const ShardingProblem &problem,
                                         MLIRContext *context) {
  return DictionaryWriter(problem, context).write();
}
