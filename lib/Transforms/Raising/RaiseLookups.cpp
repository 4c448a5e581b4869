//===- RaiseLookups.cpp - Lookups that other dialects spell out -----------===//

#include "EmitLookup.h"
#include "Found/Values.h"
#include "InlineTables.h"
#include "JaggedArguments.h"
#include "LinalgBag.h"
#include "LinalgForms.h"
#include "LooksLike.h"
#include "LoopForms.h"
#include "Pooling.h"
#include "StableHloForms.h"
#include "TableSources.h"
#include "TorchForms.h"
#include "WeightsFile.h"

#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace neuroshard {
#define GEN_PASS_DEF_RAISELOOKUPS
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

static remark::RemarkOpts remarkNamed(llvm::StringRef name) {
  return remark::RemarkOpts::name(name).category("neuroshard-raise-lookups");
}

namespace {

/// A source and the lookups that read it.
struct RaisedTable {
  TableSource source;
  std::vector<FoundLookup> lookups;
};

class Raiser {
public:
  Raiser(ModuleOp module, const RaiseLookupsOptions &options)
      : module(module), symbols(module), options(options) {}

  void find();
  /// Keeps the tables that nothing else reads.
  void select();
  void rewrite();
  const Misses &getMisses() const { return misses; }
  /// The rows of the tables that were constants, by the tables' names.
  std::vector<std::pair<std::string, Attribute>> weights;
  unsigned numLookups = 0, numTables = 0;

private:
  bool takesTable(func::FuncOp function);
  void findIn(func::FuncOp function);
  void nameUnknown(Operation *op);
  std::optional<FoundLookup> findLookup(Operation *op, Misses &why);
  void drop(const RaisedTable &table, const std::string &reason);
  ir::TableOp createTable(const RaisedTable &raised);
  void eraseUnused(llvm::SmallSetVector<Operation *, 16> &ops);

  ModuleOp module;
  SymbolTable symbols;
  const RaiseLookupsOptions &options;
  Misses misses;
  llvm::MapVector<void *, RaisedTable> tables;
  Operation *lastTable = nullptr;
};

std::optional<FoundLookup> Raiser::findLookup(Operation *op, Misses &why) {
  bool valid = options.assumeValidInputs;
  for (auto find :
       {findLinalgBag, findLoop, findStableHloGather, findTorchEmbedding})
    if (std::optional<FoundLookup> found = find(op, why, valid))
      return found;
  if (why.lookups.contains(op))
    return std::nullopt;
  for (auto find : {findTensorGather, findLinalgGather})
    if (std::optional<FoundLookup> found = find(op, why))
      return found;
  return std::nullopt;
}

/// Names an op that selects rows in another form, if nothing in it is named.
void Raiser::nameUnknown(Operation *op) {
  bool isNamed = llvm::any_of(misses.lookups, [op](const auto &missed) {
    return op->isAncestor(missed.first);
  });
  if (!isNamed && isa<func::FuncOp>(op->getParentOp()) && looksLikeLookup(op))
    misses.lookup(op, "it selects rows of a table by ids in a form that is not "
                      "raised; docs/raising.md lists those that are");
}

void Raiser::findIn(func::FuncOp function) {
  Block *entry = &function.getBody().front();
  function.walk([&](Operation *op) {
    std::optional<FoundLookup> found = findLookup(op, misses);
    if (!found)
      return nameUnknown(op);
    if (op->getBlock() != entry) {
      misses.lookup(op, "it is in a region or branch: every device takes part "
                        "in every lookup of every step");
      return;
    }
    std::string reason;
    std::optional<TableSource> source = sourceOf(found->table->get(), reason);
    if (!source) {
      misses.lookup(op, reason);
      return;
    }
    Type element = found->type.getElementType();
    if (element != source->type.getElementType() && !element.isF32()) {
      misses.lookup(op, "its result must be of f32 or of the table's " +
                            textOf(source->type.getElementType()) +
                            ", got: " + textOf(element));
      return;
    }
    RaisedTable &table = tables[source->key()];
    table.source = *source;
    std::vector<FoundLookup> pooled;
    findPooled(*found, misses, pooled);
    llvm::append_range(table.lookups, pooled);
  });
}

/// Whether a lookup in the function reads rows of one of its arguments.
bool Raiser::takesTable(func::FuncOp function) {
  Misses ignored;
  return function
      ->walk([&](Operation *op) {
        std::optional<FoundLookup> found = findLookup(op, ignored);
        std::string reason;
        std::optional<TableSource> source;
        if (found)
          source = sourceOf(found->table->get(), reason);
        return source && isa_and_nonnull<BlockArgument>(source->value)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void Raiser::find() {
  inlineTables(module, symbols,
               [this](func::FuncOp function) { return takesTable(function); });
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      findIn(function);
}

void Raiser::drop(const RaisedTable &table, const std::string &reason) {
  for (const FoundLookup &found : table.lookups)
    misses.lookup(found.table->getOwner(), reason);
}

void Raiser::select() {
  tables.remove_if([&](auto &entry) {
    RaisedTable &table = entry.second;
    llvm::DenseSet<OpOperand *> reads;
    for (const FoundLookup &found : table.lookups)
      reads.insert(found.table);
    std::string reason = whyNotTable(table.source, reads);
    if (reason.empty() && table.source.contents) {
      if (options.weightsFile.empty())
        reason = "the values of the table would be lost; name a file for them "
                 "with the option 'weights-file'";
      else if (!canWrite(table.source.contents))
        reason = "the values of the table are not in this file";
    }
    if (!reason.empty())
      drop(table, reason);
    return !reason.empty();
  });
}

/// The name of the global, location or resource, or a number.
static std::string nameOf(const TableSource &source) {
  if (source.global)
    return SymbolTable::getSymbolName(source.global).str();
  auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(source.contents);
  if (resource && !isa<NameLoc>(source.value.getLoc()))
    return resource.getRawHandle().getKey().str();
  return raising::nameOf(source.value, "table");
}

/// Whether some part of the location is a place in a file.
static bool isPlace(Location loc) {
  return loc
      ->walk([](Location part) {
        return isa<FileLineColRange>(part) ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The location of a table's source. A name alone, as that of an argument often
/// is, gets the place of the function, or of the op that reads the rows.
static Location locationOf(const RaisedTable &raised) {
  const TableSource &source = raised.source;
  Location loc =
      source.global ? source.global->getLoc() : source.value.getLoc();
  if (isPlace(loc))
    return loc;
  Operation *op = raised.lookups.front().op;
  if (isa_and_nonnull<BlockArgument>(source.value))
    op = op->getParentOp();
  if (auto named = dyn_cast<NameLoc>(loc))
    return NameLoc::get(named.getName(), op->getLoc());
  return op->getLoc();
}

ir::TableOp Raiser::createTable(const RaisedTable &raised) {
  const TableSource &source = raised.source;
  std::string name = nameOf(source);
  // The table has the name of its global, which goes.
  if (source.global)
    (void)symbols.renameToUnique(source.global, {});
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  if (lastTable)
    builder.setInsertionPointAfter(lastTable);
  auto table = ir::TableOp::create(
      builder, locationOf(raised), name, source.type.getDimSize(0),
      source.type.getDimSize(1), source.type.getElementType());
  // Renames it if the name is taken.
  symbols.insert(table);
  lastTable = table;
  return table;
}

/// Says what became a table: who has its rows must know its name.
static void remarkTable(const TableSource &source, ir::TableOp table) {
  std::string what = "a constant";
  if (source.global)
    what = "a global";
  else if (auto argument = dyn_cast<BlockArgument>(source.value))
    what = "argument " + std::to_string(argument.getArgNumber()) + " of '@" +
           printable(cast<func::FuncOp>(argument.getOwner()->getParentOp())
                         .getSymName()) +
           "'";
  remark::passed(table.getLoc(), remarkNamed("Table"))
      << "table '" + printable(table.getSymName()) + "' was " + what;
}

static std::string describe(ir::LookupOp lookup) {
  return "'" + stringifyPooling(lookup.getPooling()).str() +
         "' lookup of table '" + printable(lookup.getTable()) + "'";
}

/// Whether the op can go when nobody uses it. Those of torch-mlir and StableHLO
/// are not registered here: the ones that stand before a lookup are named.
static bool isUnneeded(Operation *op) {
  llvm::StringRef name = op->getName().getStringRef();
  return op->use_empty() &&
         (isOpTriviallyDead(op) || name.starts_with("torch.constant.") ||
          name == "torch.prim.ListConstruct" ||
          name == "torch.aten.unsqueeze" ||
          name == "torch_c.to_builtin_tensor" || name == "stablehlo.constant" ||
          name == "stablehlo.reshape" || name == "stablehlo.convert" ||
          name == "stablehlo.broadcast_in_dim");
}

/// Erases those of `ops` that nobody uses, and pure ops that only they used.
void Raiser::eraseUnused(llvm::SmallSetVector<Operation *, 16> &ops) {
  llvm::SmallPtrSet<Operation *, 8> sources;
  for (auto &[key, table] : tables)
    if (table.source.value)
      sources.insert(table.source.value.getDefiningOp());
  for (bool erased = true; erased;) {
    erased = false;
    for (Operation *op : llvm::to_vector(ops)) {
      // What is no longer in the set is erased.
      if (!ops.contains(op) || !op->use_empty())
        continue;
      ops.remove(op);
      SmallVector<Value> operands(op->getOperands());
      op->walk([&](Operation *inner) {
        llvm::append_range(operands, inner->getOperands());
      });
      llvm::SmallPtrSet<Operation *, 8> inside;
      op->walk([&](Operation *inner) { inside.insert(inner); });
      SmallVector<Operation *> definitions;
      for (Value operand : operands)
        if (Operation *definition = operand.getDefiningOp())
          if (!inside.contains(definition))
            definitions.push_back(definition);
      op->erase();
      erased = true;
      for (Operation *definition : definitions)
        if (isUnneeded(definition) && !sources.contains(definition))
          ops.insert(definition);
    }
  }
}

void Raiser::rewrite() {
  struct Raised {
    const FoundLookup *found;
    ir::TableOp table;
  };
  llvm::MapVector<Operation *, std::vector<Raised>> byFunction;
  for (auto &[key, table] : tables) {
    ir::TableOp op = createTable(table);
    remarkTable(table.source, op);
    if (table.source.contents)
      weights.emplace_back(op.getSymName(), table.source.contents);
    ++numTables;
    for (const FoundLookup &found : table.lookups)
      byFunction[found.op->getParentOp()].push_back({&found, op});
  }
  std::map<Operation *, LookupEmitter> emitters;
  for (auto &[function, lookups] : byFunction) {
    llvm::stable_sort(lookups, [](const Raised &a, const Raised &b) {
      return a.found->op->isBeforeInBlock(b.found->op);
    });
    LookupEmitter &emitter = emitters[function];
    for (const Raised &raised : lookups) {
      ir::LookupOp lookup = emitter.emit(*raised.found, raised.table);
      ++numLookups;
      remark::passed(lookup.getLoc(), remarkNamed("Raised"))
          << describe(lookup) + " for '" + textOf(raised.found->op->getName()) +
                 "'";
    }
  }
  llvm::SmallSetVector<Operation *, 16> consumed;
  for (auto &[function, lookups] : byFunction)
    for (const Raised &raised : lookups)
      consumed.insert_range(raised.found->consumed);
  eraseUnused(consumed);
  SmallVector<BlockArgument> arguments;
  for (auto &[key, table] : tables) {
    if (auto argument = dyn_cast_or_null<BlockArgument>(table.source.value))
      arguments.push_back(argument);
    eraseSource(table.source);
  }
  for (BlockArgument argument : arguments) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    (void)function.eraseArgument(argument.getArgNumber());
  }
  for (auto &[op, lookups] : byFunction) {
    auto function = cast<func::FuncOp>(op);
    if (!namesSymbol(module, function.getSymNameAttr())) {
      convertSignature(function);
      if (options.jaggedArguments)
        makeJaggedArguments(function, emitters[op].getPacks());
    }
    for (Operation &inner :
         llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isUnneeded(&inner))
        inner.erase();
  }
}

struct RaiseLookups
    : CheckedOptions<neuroshard::impl::RaiseLookupsBase<RaiseLookups>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override;
  LogicalResult report(const Misses &misses);
};

LogicalResult RaiseLookups::report(const Misses &misses) {
  for (auto &[op, miss] : misses.lookups) {
    Location loc = miss.culprit->getLoc();
    if (strict)
      emitError(loc) << "'" << textOf(op->getName())
                     << "' op looks like a lookup and is not raised: "
                     << miss.reason;
    remark::missed(loc, remarkNamed("NotRaised"))
        << "'" + textOf(op->getName()) +
               "' looks like a lookup: " + miss.reason;
  }
  for (auto &[op, miss] : misses.poolings)
    remark::missed(miss.culprit->getLoc(), remarkNamed("NotPooled"))
        << "'" + textOf(op->getName()) + "': " + miss.reason;
  return failure(strict && !misses.lookups.empty());
}

void RaiseLookups::runOnOperation() {
  RaiseLookupsOptions options;
  options.strict = strict;
  options.assumeValidInputs = assumeValidInputs;
  options.jaggedArguments = jaggedArguments;
  options.weightsFile = weightsFile;
  Raiser raiser(getOperation(), options);
  raiser.find();
  raiser.select();
  if (failed(report(raiser.getMisses())))
    return signalPassFailure();
  raiser.rewrite();
  if (!weightsFile.empty()) {
    auto *dialect = getContext().getLoadedDialect<ir::NeuroShardDialect>();
    std::string error =
        writeWeights(raiser.weights, weightsFile,
                     dialect->getRegisteredInterface<WeightsFilePlace>());
    if (!error.empty()) {
      emitError(getOperation().getLoc(), "weights-file: ") << printable(error);
      return signalPassFailure();
    }
  }
  numRaised += raiser.numLookups;
  numTables += raiser.numTables;
  remark::analysis(getOperation().getLoc(), remarkNamed("Counts"))
      << remark::add("{0} lookups made, of {1} tables", raiser.numLookups,
                     raiser.numTables);
}

} // namespace
