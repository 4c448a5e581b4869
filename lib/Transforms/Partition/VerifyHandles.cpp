//===- VerifyHandles.cpp - Uses and releases of a step's handles ----------===//

#include "VerifyHandles.h"

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

struct Handle {
  StringAttr exchange;
  Operation *made;
  Operation *released = nullptr;
  bool escapes = false; ///< to where it is not followed.
};

/// The numbers of the handles in a value: one, or those of a bundle's values in
/// order. kNone: something else, or a handle that comes from elsewhere.
using Held = SmallVector<int64_t, 2>;
constexpr int64_t kNone = -1;

/// Runs functions one after the other on handles.
class HandleVerifier {
public:
  explicit HandleVerifier(ModuleOp module) : module(module) {}

  /// Gives what is held by the results; fails with an error for a wrong use.
  FailureOr<SmallVector<Held>> run(func::FuncOp function, ArrayRef<Held> given);

private:
  LogicalResult run(Operation *op);
  LogicalResult call(func::CallOp op);
  LogicalResult use(Operation *op, Value value, StringAttr exchange);
  LogicalResult release(ReleaseOp op);
  LogicalResult verifyReleased(func::FuncOp function, Operation *end);
  void make(Operation *op, Value value, FlatSymbolRefAttr exchange);
  void bundle(ValueRange values, Value into);
  void unbundle(Value from, ValueRange values);
  void letGo(Operation *op);
  int64_t handleOf(Value value) const;

  ModuleOp module;
  SmallVector<Handle> handles;
  llvm::DenseMap<Value, Held> held;
  llvm::SmallDenseSet<Operation *> running;
};

int64_t HandleVerifier::handleOf(Value value) const {
  auto found = held.find(value);
  return found == held.end() || found->second.size() != 1
             ? kNone
             : found->second.front();
}

void HandleVerifier::make(Operation *op, Value value,
                          FlatSymbolRefAttr exchange) {
  held[value] = {static_cast<int64_t>(handles.size())};
  handles.push_back({exchange.getAttr(), op});
}

void HandleVerifier::bundle(ValueRange values, Value into) {
  Held &all = held[into];
  all.clear();
  for (Value value : values)
    all.push_back(handleOf(value));
}

void HandleVerifier::unbundle(Value from, ValueRange values) {
  Held all = held.lookup(from);
  for (auto [index, value] : llvm::enumerate(values))
    held[value] = {index < all.size() ? all[index] : kNone};
}

/// Of what else an op takes, also in its regions, nothing is known any more.
void HandleVerifier::letGo(Operation *op) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      for (int64_t number : held.lookup(operand))
        if (number != kNone)
          handles[number].escapes = true;
  });
}

LogicalResult HandleVerifier::use(Operation *op, Value value,
                                  StringAttr exchange) {
  int64_t number = handleOf(value);
  if (number == kNone)
    return success();
  const Handle &handle = handles[number];
  if (handle.released) {
    InFlightDiagnostic diagnostic =
        op->emitOpError("uses a handle that is released already");
    diagnostic.attachNote(handle.released->getLoc()) << "it is released here";
    return diagnostic;
  }
  if (handle.exchange == exchange)
    return success();
  InFlightDiagnostic diagnostic =
      op->emitOpError("of exchange '@")
      << printable(exchange.getValue()) << "' takes a handle of '@"
      << printable(handle.exchange.getValue()) << "'";
  diagnostic.attachNote(handle.made->getLoc()) << "the handle is made here";
  return diagnostic;
}

LogicalResult HandleVerifier::release(ReleaseOp op) {
  int64_t number = handleOf(op.getValue());
  if (number == kNone)
    return success();
  Handle &handle = handles[number];
  if (!handle.released) {
    handle.released = op;
    return success();
  }
  InFlightDiagnostic diagnostic =
      op.emitOpError("releases a handle a second time");
  diagnostic.attachNote(handle.released->getLoc()) << "the first is here";
  return diagnostic;
}

LogicalResult HandleVerifier::call(func::CallOp op) {
  auto callee = module.lookupSymbol<func::FuncOp>(op.getCallee());
  if (!callee || !llvm::hasSingleElement(callee.getBody())) {
    letGo(op);
    return success();
  }
  SmallVector<Held> given;
  for (Value operand : op.getOperands())
    given.push_back(held.lookup(operand));
  FailureOr<SmallVector<Held>> results = run(callee, given);
  if (failed(results))
    return failure();
  for (auto [value, result] : llvm::zip(op.getResults(), *results))
    held[value] = result;
  return success();
}

LogicalResult HandleVerifier::run(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](RouteOp route) {
        make(op, route.getRouted(), route.getExchangeAttr());
        return success();
      })
      .Case([&](RunLookupOp lookup) {
        make(op, lookup.getPartials(), lookup.getExchangeAttr());
        return use(op, lookup.getRouted(), lookup.getExchangeAttr().getAttr());
      })
      .Case([&](ExchangeGradientsOp gradients) {
        make(op, gradients.getPartials(), gradients.getExchangeAttr());
        return use(op, gradients.getRouted(),
                   gradients.getExchangeAttr().getAttr());
      })
      .Case<ExchangeResultsOp, ExchangeJoinedResultsOp>([&](auto results) {
        StringAttr exchange = results.getExchangeAttr().getAttr();
        return success(succeeded(use(op, results.getRouted(), exchange)) &&
                       succeeded(use(op, results.getPartials(), exchange)));
      })
      .Case([&](RunWeightsGradientOp gradient) {
        StringAttr exchange = gradient.getExchangeAttr().getAttr();
        return success(succeeded(use(op, gradient.getRouted(), exchange)) &&
                       succeeded(use(op, gradient.getGradients(), exchange)));
      })
      .Case([&](RunUpdateOp update) {
        for (auto [exchange, routed, gradients] :
             llvm::zip(update.getExchanges().getAsRange<FlatSymbolRefAttr>(),
                       update.getRouted(), update.getGradients()))
          if (failed(use(op, routed, exchange.getAttr())) ||
              failed(use(op, gradients, exchange.getAttr())))
            return failure();
        return success();
      })
      .Case([&](ReleaseOp op) { return release(op); })
      .Case<SuspendOp, SaveOp>([&](auto op) {
        bundle(op.getValues(), op.getBundle());
        return success();
      })
      .Case<ResumeOp, RestoreOp>([&](auto op) {
        unbundle(op.getBundle(), op.getValues());
        return success();
      })
      .Case([&](func::CallOp op) { return call(op); })
      .Default([&](Operation *op) {
        if (!op->hasTrait<OpTrait::IsTerminator>())
          letGo(op);
        return success();
      });
}

/// Handles that a function was given or made are released, or in its results.
LogicalResult HandleVerifier::verifyReleased(func::FuncOp function,
                                             Operation *end) {
  llvm::SmallDenseSet<int64_t> passedOn;
  for (Value value : end->getOperands())
    for (int64_t number : held.lookup(value))
      passedOn.insert(number);
  for (auto [number, handle] : llvm::enumerate(handles)) {
    if (handle.released || handle.escapes ||
        passedOn.contains(static_cast<int64_t>(number)))
      continue;
    InFlightDiagnostic diagnostic =
        handle.made->emitOpError("makes a handle that is never released");
    diagnostic.attachNote(end->getLoc())
        << "'@" << printable(function.getSymName()) << "' ends here";
    return diagnostic;
  }
  return success();
}

FailureOr<SmallVector<Held>> HandleVerifier::run(func::FuncOp function,
                                                 ArrayRef<Held> given) {
  SmallVector<Held> results(function.getNumResults());
  if (!llvm::hasSingleElement(function.getBody()) ||
      !running.insert(function).second)
    return results;
  Block &block = function.getBody().front();
  for (auto [index, argument] : llvm::enumerate(block.getArguments()))
    held[argument] = index < given.size() ? given[index] : Held();
  for (Operation &op : block)
    if (failed(run(&op)))
      return failure();
  for (auto [result, value] :
       llvm::zip(results, block.getTerminator()->getOperands()))
    result = held.lookup(value);
  running.erase(function);
  if (running.empty() && failed(verifyReleased(function, &block.back())))
    return failure();
  return results;
}

/// Runs a function on the device and what the last result before it holds.
LogicalResult runNext(HandleVerifier &verifier, ModuleOp module,
                      llvm::StringRef name, Held &last) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function)
    return success();
  FailureOr<SmallVector<Held>> results = verifier.run(function, {Held(), last});
  if (failed(results))
    return failure();
  last = results->empty() ? Held() : results->back();
  return success();
}

} // namespace

LogicalResult neuroshard::verifyHandles(ModuleOp module) {
  HandleVerifier begun(module);
  Held pending;
  if (failed(runNext(begun, module, kStartName, pending)) ||
      failed(runNext(begun, module, kLookupName, pending)))
    return failure();
  for (llvm::StringRef wait : {kWaitName, kJoinedWaitName}) {
    if (!module.lookupSymbol(wait))
      continue;
    HandleVerifier verifier = begun;
    Held kept = pending;
    for (llvm::StringRef name :
         {wait, llvm::StringRef(kGradientsName), llvm::StringRef(kUpdateName)})
      if (failed(runNext(verifier, module, name, kept)))
        return failure();
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (llvm::is_contained(kStepNames, function.getSymName()))
      continue;
    HandleVerifier verifier(module);
    if (failed(verifier.run(function, {})))
      return failure();
  }
  return success();
}
