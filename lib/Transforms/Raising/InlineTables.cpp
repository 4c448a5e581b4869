//===- InlineTables.cpp - Functions that take tables ----------------------===//

#include "InlineTables.h"
#include "Found/Values.h"

#include "neuroshard/Transforms/StepFunctions.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

/// Puts the ops of `function`, which has one block, in the place of `call`.
static void inlineCall(func::CallOp call, func::FuncOp function) {
  OpBuilder builder(call);
  Block &body = function.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), call.getOperands());
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  call.erase();
}

void neuroshard::raising::inlineTables(
    ModuleOp module, SymbolTable &symbols,
    llvm::function_ref<bool(func::FuncOp)> takesTable) {
  // A caller takes the table in its turn. One that calls itself, perhaps
  // through others, would do so for ever: each function has one turn.
  llvm::DenseSet<Operation *> done;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (done.contains(function) || function.isExternal() ||
          !function.getBody().hasOneBlock() || !takesTable(function))
        continue;
      done.insert(function);
      SmallVector<func::CallOp> calls = callsOf(function);
      if (llvm::any_of(calls, [&](func::CallOp call) {
            return function->isProperAncestor(call);
          }))
        continue;
      for (func::CallOp call : calls)
        inlineCall(call, function);
      changed |= !calls.empty();
      if (!calls.empty() && function.isPrivate() &&
          !namesSymbol(module, function.getSymNameAttr()))
        symbols.erase(function);
    }
  }
}
