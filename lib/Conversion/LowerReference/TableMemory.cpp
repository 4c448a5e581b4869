//===- TableMemory.cpp - Tables as arguments of functions -----------------===//

#include "TableMemory.h"

#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Dialect/ElementTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace neuroshard {

TableInfos collectTables(ModuleOp module) {
  TableInfos tables;
  for (auto table : module.getOps<ir::TableOp>())
    tables[table.getSymNameAttr()] = {table.getRows(), table.getDim(),
                                      table.getElementType(),
                                      table.getOptimizer()};
  return tables;
}

namespace {
/// Tables that a function needs.
struct Needs {
  llvm::SmallPtrSet<Attribute, 8> read, updated;

  /// Adds those of a callee; true if any is new.
  bool add(const Needs &callee) {
    size_t before = read.size() + updated.size();
    read.insert(callee.read.begin(), callee.read.end());
    updated.insert(callee.updated.begin(), callee.updated.end());
    return read.size() + updated.size() != before;
  }
};
using NeedsOfFunctions = llvm::MapVector<func::FuncOp, Needs>;
} // namespace

/// Tables of the ops in the function itself.
static Needs findOwnNeeds(func::FuncOp function) {
  Needs needs;
  function.walk([&](Operation *op) {
    if (auto lookup = dyn_cast<ir::LookupOp>(op))
      needs.read.insert(lookup.getTableAttr().getAttr());
    if (auto gradient = dyn_cast<ir::WeightsGradientOp>(op))
      for (auto lookup : gradient.getLookups().getAsRange<ir::LookupAttr>())
        needs.read.insert(lookup.getTable().getAttr());
    if (auto update = dyn_cast<ir::UpdateOp>(op)) {
      needs.read.insert(update.getTableAttr().getAttr());
      needs.updated.insert(update.getTableAttr().getAttr());
    }
  });
  return needs;
}

static func::FuncOp getCallee(ModuleOp module, func::CallOp call) {
  return module.lookupSymbol<func::FuncOp>(call.getCallee());
}

static NeedsOfFunctions findNeeds(ModuleOp module) {
  NeedsOfFunctions needs;
  for (auto function : module.getOps<func::FuncOp>())
    needs[function] = findOwnNeeds(function);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[function, own] : needs)
      function.walk([&, &own = own](func::CallOp call) {
        if (func::FuncOp callee = getCallee(module, call))
          changed |= own.add(needs.find(callee)->second);
      });
  }
  return needs;
}

static SmallVector<MemRefType> getStateTypes(ir::TableOp table) {
  std::optional<ir::OptimizerAttr> optimizer = table.getOptimizer();
  if (!optimizer)
    return {};
  int64_t rows = table.getRows(), dim = table.getDim();
  Type f32 = Float32Type::get(table.getContext());
  // Rows never have to catch up here.
  OptimizerStates states = propertiesOf(optimizer->getKind()).states;
  SmallVector<MemRefType> types(states.perElement,
                                MemRefType::get({rows, dim}, f32));
  types.append(states.perRow, MemRefType::get({rows}, f32));
  return types;
}

static LogicalResult addArgument(func::FuncOp function, ir::TableOp table,
                                 MemRefType type, StringRef attrName) {
  OpBuilder builder(function.getContext());
  auto attrs = builder.getDictionaryAttr(
      builder.getNamedAttr(attrName, table.getSymNameAttr()));
  return function.insertArgument(function.getNumArguments(), type, attrs,
                                 table.getLoc());
}

static LogicalResult addArguments(ModuleOp module, func::FuncOp function,
                                  const Needs &needs) {
  for (auto table : module.getOps<ir::TableOp>()) {
    if (!needs.read.contains(table.getSymNameAttr()))
      continue;
    ElementType values = valueType(elementTypeOf(table.getElementType()));
    auto weights = MemRefType::get({table.getRows(), table.getDim()},
                                   typeOf(values, module.getContext()));
    if (failed(addArgument(function, table, weights, kWeightsArgumentAttr)))
      return failure();
    if (!needs.updated.contains(table.getSymNameAttr()))
      continue;
    for (MemRefType state : getStateTypes(table))
      if (failed(addArgument(function, table, state, kStateArgumentAttr)))
        return failure();
  }
  return success();
}

/// Adds the caller's memory of the tables to the operands of calls.
static void addOperands(ModuleOp module, func::CallOp call) {
  func::FuncOp callee = getCallee(module, call);
  if (!callee)
    return;
  for (unsigned i = call.getNumOperands(); i < callee.getNumArguments(); ++i) {
    if (auto table =
            callee.getArgAttrOfType<StringAttr>(i, kWeightsArgumentAttr))
      call->insertOperands(i, getTableMemory(call, table).weights);
    auto table = callee.getArgAttrOfType<StringAttr>(i, kStateArgumentAttr);
    if (!table)
      continue;
    // The states of a table follow each other.
    unsigned number = 0;
    while (callee.getArgAttrOfType<StringAttr>(i - 1 - number,
                                               kStateArgumentAttr) == table)
      ++number;
    call->insertOperands(i, getTableMemory(call, table).states[number]);
  }
}

LogicalResult addTableArguments(ModuleOp module) {
  for (auto &[function, needs] : findNeeds(module))
    if (!needs.read.empty() && failed(addArguments(module, function, needs)))
      return failure();
  module.walk([&](func::CallOp call) { addOperands(module, call); });
  return success();
}

TableMemory getTableMemory(Operation *user, StringAttr table) {
  auto function = user->getParentOfType<func::FuncOp>();
  unsigned numArguments = function.getNumArguments();
  Block &entry = function.getBody().front();
  TableMemory memory;
  for (unsigned i = 0; i < numArguments; ++i) {
    BlockArgument argument = entry.getArgument(i);
    if (function.getArgAttrOfType<StringAttr>(i, kWeightsArgumentAttr) == table)
      memory.weights = argument;
    if (function.getArgAttrOfType<StringAttr>(i, kStateArgumentAttr) == table)
      memory.states.push_back(argument);
  }
  return memory;
}

} // namespace neuroshard
