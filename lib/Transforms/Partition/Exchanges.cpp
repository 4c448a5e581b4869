//===- Exchanges.cpp - Find the exchanges of sharded functions ------------===//

#include "Partitioner.h"

#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

static LogicalResult notSharded(func::FuncOp function,
                                const llvm::Twine &problem) {
  return function.emitError("'@")
         << printable(function.getSymName()) << "' " << problem
         << "; neuroshard-partition needs functions as neuroshard-shard makes "
            "them";
}

LogicalResult Partitioner::collectInputs() {
  for (BlockArgument argument : step.start.getArguments()) {
    auto ids = dyn_cast<JaggedType>(argument.getType());
    if (!ids)
      return notSharded(step.start, "must take jagged ids only");
    Exchange &exchange = exchanges.emplace_back();
    exchange.input = argument.getArgNumber();
    exchange.type = ids;
  }
  return success();
}

Exchange *Partitioner::exchangeOf(unsigned input) {
  auto *found = llvm::find_if(exchanges, [&](const Exchange &exchange) {
    return exchange.input == input;
  });
  return found == exchanges.end() ? nullptr : found;
}

std::optional<std::pair<LookupAttr, unsigned>>
Partitioner::trace(Value result) {
  auto gather = result.getDefiningOp<GatherBatchOp>();
  if (!gather)
    return std::nullopt;
  Value ids;
  ArrayAttr lookups;
  if (auto combine = gather.getInput().getDefiningOp<CombineOp>()) {
    ids = combine.getIds();
    lookups = combine.getLookups();
  } else if (auto lookup = gather.getInput().getDefiningOp<FusedLookupOp>()) {
    ids = lookup.getIds();
    lookups = lookup.getLookups();
  } else {
    return std::nullopt;
  }
  std::optional<unsigned> input = step.getInput(ids);
  if (!input)
    return std::nullopt;
  unsigned position = cast<OpResult>(gather.getInput()).getResultNumber();
  return std::pair(cast<LookupAttr>(lookups[position]), *input);
}

LogicalResult Partitioner::collectLookups() {
  for (auto [position, result] : llvm::enumerate(step.getLookupResults())) {
    auto traced = trace(result);
    Exchange *exchange = traced ? exchangeOf(traced->second) : nullptr;
    if (!exchange)
      return notSharded(step.wait, "must return combined lookups of its ids");
    exchange->lookups.push_back(traced->first);
    exchange->results.push_back(result.getType());
    exchange->positions.push_back(position);
  }
  llvm::erase_if(exchanges, [](const Exchange &exchange) {
    return exchange.lookups.empty();
  });
  return success();
}

LogicalResult Partitioner::collectUpdate() {
  llvm::DenseSet<Attribute> trained;
  auto addTables = [&](ArrayAttr lookups) {
    for (auto lookup : lookups.getAsRange<LookupAttr>())
      trained.insert(lookup.getTable());
  };
  for (Operation &op : step.update.getBody().front()) {
    if (auto update = dyn_cast<FusedUpdateOp>(op))
      addTables(update.getLookups());
    else if (auto rows = dyn_cast<ReduceRowsOp>(op))
      addTables(rows.getLookups());
  }
  for (Exchange &exchange : exchanges)
    exchange.trained = llvm::any_of(exchange.lookups, [&](Attribute lookup) {
      return trained.contains(cast<LookupAttr>(lookup).getTable());
    });
  Operation *terminator = step.update.getBody().front().getTerminator();
  for (Value result : terminator->getOperands()) {
    auto gather = result.getDefiningOp<GatherBatchOp>();
    auto combine =
        gather ? gather.getInput().getDefiningOp<CombineWeightsGradientOp>()
               : CombineWeightsGradientOp();
    std::optional<unsigned> input =
        combine ? step.getInput(combine.getIds()) : std::nullopt;
    Exchange *exchange = input ? exchangeOf(*input) : nullptr;
    if (!exchange)
      return notSharded(step.update,
                        "must return combined gradients of sample weights");
    exchange->weightsGradient = true;
    weightsResults.push_back(exchange);
  }
  return success();
}
