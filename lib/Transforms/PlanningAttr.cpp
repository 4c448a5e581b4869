//===- PlanningAttr.cpp - The attribute neuroshard.planning ---------------===//

#include "PlanningAttr.h"

#include "PlannerEnums.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace neuroshard;

using ir::NeuroShardDialect;

namespace {

/// Reads a dictionary key by key; a key nobody asked for is an error, so is a
/// value of another type.
class DictionaryReader {
public:
  DictionaryReader(Operation *op, DictionaryAttr dictionary,
                   const TableIndex &tableOfSymbol)
      : op(op), dictionary(dictionary), tableOfSymbol(tableOfSymbol) {}

  template <typename Handler> void read(llvm::StringRef key, Handler handler) {
    known.insert(key);
    Attribute value = dictionary.get(key);
    if (value && succeeded(result) && !handler(value))
      fail(key, value);
  }
  void text(llvm::StringRef key, std::string &out);
  template <typename Int> void integer(llvm::StringRef key, Int &out);
  void integer(llvm::StringRef key, std::optional<int64_t> &out);
  void number(llvm::StringRef key, double &out);
  void table(llvm::StringRef key, int &out);
  void tableSets(llvm::StringRef key, std::vector<std::vector<int>> &out);
  template <typename Enum>
  void name(llvm::StringRef key, Enum &out,
            std::optional<Enum> (*parse)(std::string_view));
  /// A list of dictionaries, each read by `readItem`.
  template <typename ReadItem>
  void items(llvm::StringRef key, ReadItem readItem);
  LogicalResult finish();

private:
  void fail(llvm::StringRef key, Attribute value) {
    result = emitError(op->getLoc(),
                       "'neuroshard.planning' has an unusable value for '")
             << key << "': " << value;
  }
  std::optional<int> tableOf(Attribute value) const {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(value);
    auto found =
        symbol ? tableOfSymbol.find(symbol.getAttr()) : tableOfSymbol.end();
    if (found == tableOfSymbol.end())
      return std::nullopt;
    return found->second;
  }

  Operation *op;
  DictionaryAttr dictionary;
  const TableIndex &tableOfSymbol;
  llvm::StringSet<> known;
  LogicalResult result = success();
};

void DictionaryReader::text(llvm::StringRef key, std::string &out) {
  read(key, [&](Attribute value) {
    auto string = dyn_cast<StringAttr>(value);
    if (string)
      out = string.str();
    return bool(string);
  });
}

template <typename Int>
void DictionaryReader::integer(llvm::StringRef key, Int &out) {
  read(key, [&](Attribute value) {
    auto integer = dyn_cast<IntegerAttr>(value);
    if (!integer || !integer.getType().isInteger(64))
      return false;
    out = static_cast<Int>(integer.getInt());
    return out == integer.getInt();
  });
}

void DictionaryReader::integer(llvm::StringRef key,
                               std::optional<int64_t> &out) {
  if (dictionary.get(key))
    integer(key, out.emplace());
  else
    known.insert(key);
}

void DictionaryReader::number(llvm::StringRef key, double &out) {
  read(key, [&](Attribute value) {
    auto number = dyn_cast<FloatAttr>(value);
    if (number)
      out = number.getValueAsDouble();
    return bool(number);
  });
}

void DictionaryReader::table(llvm::StringRef key, int &out) {
  read(key, [&](Attribute value) {
    std::optional<int> table = tableOf(value);
    out = table.value_or(0);
    return table.has_value();
  });
}

void DictionaryReader::tableSets(llvm::StringRef key,
                                 std::vector<std::vector<int>> &out) {
  read(key, [&](Attribute value) {
    auto sets = dyn_cast<ArrayAttr>(value);
    for (Attribute set : sets ? sets.getValue() : ArrayRef<Attribute>()) {
      std::vector<int> &tables = out.emplace_back();
      auto members = dyn_cast<ArrayAttr>(set);
      for (Attribute member :
           members ? members.getValue() : ArrayRef<Attribute>()) {
        std::optional<int> table = tableOf(member);
        if (!table)
          return false;
        tables.push_back(*table);
      }
    }
    return bool(sets);
  });
}

template <typename Enum>
void DictionaryReader::name(llvm::StringRef key, Enum &out,
                            std::optional<Enum> (*parse)(std::string_view)) {
  read(key, [&](Attribute value) {
    auto string = dyn_cast<StringAttr>(value);
    std::optional<Enum> parsed =
        string ? parse(string.getValue()) : std::nullopt;
    out = parsed.value_or(out);
    return parsed.has_value();
  });
}

template <typename ReadItem>
void DictionaryReader::items(llvm::StringRef key, ReadItem readItem) {
  read(key, [&](Attribute value) {
    auto list = dyn_cast<ArrayAttr>(value);
    for (Attribute item : list ? list.getValue() : ArrayRef<Attribute>()) {
      auto entry = dyn_cast<DictionaryAttr>(item);
      if (!entry)
        return false;
      DictionaryReader reader(op, entry, tableOfSymbol);
      readItem(reader);
      result = reader.finish();
      if (failed(result))
        break;
    }
    return bool(list);
  });
}

LogicalResult DictionaryReader::finish() {
  for (NamedAttribute entry : dictionary)
    if (succeeded(result) && !known.contains(entry.getName()))
      return emitError(op->getLoc(),
                       "'neuroshard.planning' has an unknown key '")
             << entry.getName().getValue() << "'";
  return result;
}

void readDevices(DictionaryReader &reader, std::vector<int> &out) {
  reader.read("devices", [&](Attribute value) {
    auto devices = dyn_cast<DenseI64ArrayAttr>(value);
    if (!devices)
      return false;
    for (int64_t device : devices.asArrayRef())
      out.push_back(static_cast<int>(device));
    return std::equal(out.begin(), out.end(), devices.asArrayRef().begin());
  });
}

void readTableConstraint(DictionaryReader &reader, Constraints &out) {
  TableConstraint &constraint = out.tables.emplace_back();
  reader.table("table", constraint.table);
  reader.integer("min_width", constraint.minWidth);
  reader.read("allowed_kinds", [&](Attribute value) {
    auto kinds = dyn_cast<ArrayAttr>(value);
    for (Attribute kind : kinds ? kinds.getValue() : ArrayRef<Attribute>()) {
      auto name = dyn_cast<StringAttr>(kind);
      auto parsed = name ? parseShardingKind(name.getValue()) : std::nullopt;
      if (!parsed)
        return false;
      constraint.allowedKinds.push_back(*parsed);
    }
    return bool(kinds);
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
    add(key, builder.getStringAttr(nameOf(value)));
  }
  Attribute table(int index) {
    return FlatSymbolRefAttr::get(
        builder.getContext(), problem.tables[static_cast<size_t>(index)].name);
  }
  void addSets(llvm::StringRef key, const std::vector<std::vector<int>> &sets);
  void addForbids();
  void addTables();
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
      kinds.push_back(builder.getStringAttr(nameOf(toString(kind))));
    SmallVector<NamedAttribute> item = {
        builder.getNamedAttr("table", table(constraint.table)),
        builder.getNamedAttr("min_width",
                             builder.getI64IntegerAttr(constraint.minWidth))};
    if (!kinds.empty())
      item.push_back(
          builder.getNamedAttr("allowed_kinds", builder.getArrayAttr(kinds)));
    items.push_back(builder.getDictionaryAttr(item));
  }
  add("tables", builder.getArrayAttr(items));
}

DictionaryAttr DictionaryWriter::write() {
  const ShardingProblem defaults;
  if (!problem.source.empty())
    addName("source", problem.source);
  if (problem.features.empty() && problem.batch.idType != IdType::I64)
    addName("id_type", toString(problem.batch.idType));
  if (problem.features.empty() && problem.batch.outputType != ElementType::F32)
    addName("output_type", toString(problem.batch.outputType));
  if (problem.batch.wireType != ElementType::F32)
    addName("wire_type", toString(problem.batch.wireType));
  if (problem.batch.inputCopies != defaults.batch.inputCopies)
    addInteger("input_copies", problem.batch.inputCopies);
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
  const Reserves &reserves = problem.constraints.reserves;
  addReserve("dense_reserve_bytes", reserves.denseBytes);
  addReserve("fragmentation_reserve_bytes", reserves.fragmentationBytes);
  addReserve("communicator_reserve_bytes", reserves.communicatorBytes);
  return entries.empty() ? DictionaryAttr()
                         : builder.getDictionaryAttr(entries);
}

} // namespace

LogicalResult neuroshard::readPlanning(ModuleOp module,
                                       const TableIndex &tableOfSymbol,
                                       ShardingProblem &problem) {
  auto dictionary = module->getAttrOfType<DictionaryAttr>(
      NeuroShardDialect::kPlanningAttrName);
  if (!dictionary)
    return success();
  DictionaryReader reader(module, dictionary, tableOfSymbol);
  reader.text("source", problem.source);
  // What lookups say goes first; see DictionaryWriter::write().
  Batch typesWithoutLookups;
  reader.name("id_type", typesWithoutLookups.idType, parseIdType);
  reader.name("output_type", typesWithoutLookups.outputType, parseElementType);
  if (problem.features.empty()) {
    problem.batch.idType = typesWithoutLookups.idType;
    problem.batch.outputType = typesWithoutLookups.outputType;
  }
  reader.name("wire_type", problem.batch.wireType, parseElementType);
  reader.integer("input_copies", problem.batch.inputCopies);
  reader.name("memory_model", problem.memoryModel, parseMemoryModel);
  reader.name("target", problem.target, parseTarget);
  reader.name("optimizer_semantics", problem.optimizerSemantics,
              parseOptimizerSemantics);
  reader.number("cache_load_factor", problem.cacheLoadFactor);
  readConstraints(reader, problem.constraints);
  return reader.finish();
}

DictionaryAttr neuroshard::writePlanning(const ShardingProblem &problem,
                                         MLIRContext *context) {
  return DictionaryWriter(problem, context).write();
}
