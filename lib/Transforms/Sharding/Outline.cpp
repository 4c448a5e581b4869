//===- Outline.cpp - Move the lookups into functions of their own ---------===//

#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Support/OptionText.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/KeepEntry.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace neuroshard {
#define GEN_PASS_DEF_OUTLINE
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// The ancestors in `block` of the users of a value that is defined in it;
/// a user in another block of the function counts as the terminator.
void collectUsers(Value value, Block *block,
                  llvm::SmallPtrSetImpl<Operation *> &users) {
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    users.insert(ancestor ? ancestor : block->getTerminator());
  }
}

class Outliner {
public:
  explicit Outliner(func::FuncOp entry)
      : entry(entry), block(&entry.getBody().front()), last(entry) {}

  LogicalResult collect();
  LogicalResult run();
  unsigned getNumLookups() const { return lookups.size(); }
  unsigned getNumDropped() const { return numDropped; }

private:
  LogicalResult checkNames();
  LogicalResult checkCalls();
  LogicalResult defineIdsBefore(Operation *firstUse);
  func::FuncOp createStart();
  func::FuncOp createWait(PendingType pending);
  func::FuncOp createFunction(OpBuilder &builder, llvm::StringRef name,
                              TypeRange inputs, TypeRange results);

  func::FuncOp entry;
  Block *block;
  /// The next function is inserted after it.
  Operation *last;
  SmallVector<LookupOp> lookups;
  llvm::SetVector<Value> ids;
  unsigned numDropped = 0;
};

/// Drops unused lookups; the others must be in the top block of the entry.
LogicalResult Outliner::collect() {
  SmallVector<LookupOp> unused;
  WalkResult result = entry.walk([&](Operation *op) {
    if (isa<UpdateOp>(op)) {
      op->emitOpError("is not allowed in an entry function; updates are made "
                      "by neuroshard-differentiate");
      return WalkResult::interrupt();
    }
    auto lookup = dyn_cast<LookupOp>(op);
    if (!lookup)
      return WalkResult::advance();
    if (lookup->use_empty()) {
      unused.push_back(lookup);
      return WalkResult::advance();
    }
    if (lookup->getBlock() != block) {
      lookup.emitOpError("must be in the top block of '@")
          << printable(entry.getSymName())
          << "', not in a region or branch: every device takes part in every "
             "lookup of every step";
      return WalkResult::interrupt();
    }
    lookups.push_back(lookup);
    ids.insert(lookup.getIds());
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  numDropped = unused.size();
  for (LookupOp lookup : unused)
    lookup.erase();
  if (lookups.empty())
    return entry.emitError("'@") << printable(entry.getSymName())
                                 << "' has no lookup whose result is used";
  return success();
}

LogicalResult Outliner::checkNames() {
  for (llvm::StringRef name : {kStartName, kLookupName, kWaitName}) {
    Operation *other = SymbolTable::lookupNearestSymbolFrom(
        entry->getParentOp(), StringAttr::get(entry.getContext(), name));
    if (!other)
      continue;
    InFlightDiagnostic diagnostic =
        entry.emitError("the name '@")
        << printable(name) << "' is needed for the lookups of '@"
        << printable(entry.getSymName()) << "', but taken";
    diagnostic.attachNote(other->getLoc()) << "it is defined here";
    return diagnostic;
  }
  return success();
}

/// A device's entry takes an argument that a caller does not have.
LogicalResult Outliner::checkCalls() {
  auto uses = SymbolTable::getSymbolUses(entry, entry->getParentOp());
  if (!uses || uses->empty())
    return success();
  InFlightDiagnostic diagnostic =
      entry.emitError("'@")
      << printable(entry.getSymName())
      << "' has lookups and is called; inline it first: --inline";
  diagnostic.attachNote(uses->begin()->getUser()->getLoc())
      << "it is called here";
  return diagnostic;
}

/// Moves what makes `value` before `place`, an op of the same block. Moves
/// nothing and gives false if some of it has side effects or depends on a
/// lookup.
bool moveDefinitionsBefore(Value value, Operation *place) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.filter = [place](Operation *op) {
    return op->getBlock() == place->getBlock() &&
           (isa<LookupOp>(op) || !op->isBeforeInBlock(place));
  };
  (void)getBackwardSlice(value, &slice, options);
  if (slice.contains(place) || llvm::any_of(slice, [](Operation *op) {
        return isa<LookupOp>(op) || !isMemoryEffectFree(op);
      }))
    return false;
  SmallVector<Operation *> ops = slice.takeVector();
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ops)
    op->moveBefore(place);
  return true;
}

/// Start needs all ids, and results exist only after wait: ids that are made
/// after the first use of a result move before it.
LogicalResult Outliner::defineIdsBefore(Operation *firstUse) {
  for (Value value : ids) {
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->isBeforeInBlock(firstUse))
      continue;
    if (moveDefinitionsBefore(value, firstUse))
      continue;
    InFlightDiagnostic diagnostic = definition->emitOpError(
        "makes the ids of a lookup after the result of another lookup is "
        "used, and depends on that use or has side effects; all ids of a step "
        "must be there before the first result");
    diagnostic.attachNote(firstUse->getLoc()) << "the first use is here";
    return diagnostic;
  }
  return success();
}

func::FuncOp Outliner::createFunction(OpBuilder &builder, llvm::StringRef name,
                                      TypeRange inputs, TypeRange results) {
  builder.setInsertionPointAfter(last);
  auto function = func::FuncOp::create(
      builder, entry.getLoc(), name, builder.getFunctionType(inputs, results));
  builder.setInsertionPointToStart(function.addEntryBlock());
  last = function;
  return function;
}

func::FuncOp Outliner::createStart() {
  OpBuilder builder(entry.getContext());
  SmallVector<Type> types(ValueRange(ids.getArrayRef()).getTypes());
  auto pending = PendingType::get(builder.getContext(), types);
  func::FuncOp start = createFunction(builder, kStartName, types, pending);
  Value bundle =
      SuspendOp::create(builder, entry.getLoc(), pending, start.getArguments());
  func::ReturnOp::create(builder, entry.getLoc(), bundle);
  return start;
}

/// Moves the lookups into the new function.
func::FuncOp Outliner::createWait(PendingType pending) {
  OpBuilder builder(entry.getContext());
  SmallVector<Type> types;
  for (LookupOp lookup : lookups)
    types.push_back(lookup.getResult().getType());
  func::FuncOp wait = createFunction(builder, kWaitName, pending, types);
  auto resume = ResumeOp::create(builder, entry.getLoc(), pending.getTypes(),
                                 wait.getArgument(0));
  SmallVector<Value> results;
  IRMapping resumed;
  resumed.map(ids.getArrayRef(), resume.getValues());
  for (LookupOp lookup : lookups)
    results.push_back(builder.clone(*lookup, resumed)->getResult(0));
  func::ReturnOp::create(builder, entry.getLoc(), results);
  return wait;
}

LogicalResult Outliner::run() {
  if (failed(checkNames()) || failed(checkCalls()))
    return failure();
  llvm::SmallPtrSet<Operation *, 16> users;
  for (LookupOp lookup : lookups)
    collectUsers(lookup.getResult(), block, users);
  Operation *firstUse = block->getTerminator();
  for (Operation *user : users)
    if (user->isBeforeInBlock(firstUse))
      firstUse = user;
  if (failed(defineIdsBefore(firstUse)))
    return failure();

  func::FuncOp start = createStart();
  auto pending = cast<PendingType>(start.getResultTypes().front());
  func::FuncOp wait = createWait(pending);

  OpBuilder builder = OpBuilder::atBlockBegin(block);
  Operation *lastDefinition = nullptr;
  for (Value value : ids)
    if (Operation *definition = value.getDefiningOp())
      if (!lastDefinition || lastDefinition->isBeforeInBlock(definition))
        lastDefinition = definition;
  if (lastDefinition)
    builder.setInsertionPointAfter(lastDefinition);
  auto started =
      func::CallOp::create(builder, entry.getLoc(), start, ids.getArrayRef());
  builder.setInsertionPoint(firstUse);
  auto waited =
      func::CallOp::create(builder, entry.getLoc(), wait, started.getResults());
  for (auto [lookup, result] : llvm::zip(lookups, waited.getResults())) {
    lookup.getResult().replaceAllUsesWith(result);
    lookup.erase();
  }
  return success();
}

struct Outline : CheckedOptions<neuroshard::impl::OutlineBase<Outline>> {
  using CheckedOptions::CheckedOptions;

  FailureOr<func::FuncOp> findEntry();
  void runOnOperation() override;
};

FailureOr<func::FuncOp> Outline::findEntry() {
  ModuleOp module = getOperation();
  if (!entry.empty()) {
    if (failed(keepEntry(module, entry)))
      return failure();
    return module.lookupSymbol<func::FuncOp>(symbolOption(entry));
  }
  func::FuncOp found;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!hasLookup(function))
      continue;
    if (found) {
      InFlightDiagnostic diagnostic =
          function.emitError("'@")
          << printable(function.getSymName()) << "' and '@"
          << printable(found.getSymName())
          << "' both have lookups; name the entry function with the option "
             "'entry'";
      diagnostic.attachNote(found.getLoc()) << "the other function is here";
      return diagnostic;
    }
    found = function;
  }
  if (!found)
    return emitError(module.getLoc(), "no function of the module has a lookup");
  return found;
}

void Outline::runOnOperation() {
  FailureOr<func::FuncOp> function = findEntry();
  if (failed(function))
    return signalPassFailure();
  Location loc = function->getLoc();
  Outliner outliner(*function);
  if (failed(outliner.collect()) || failed(outliner.run()))
    return signalPassFailure();
  numOutlined += outliner.getNumLookups();
  numDropped += outliner.getNumDropped();
  remark::passed(
      loc, remark::RemarkOpts::name("Outlined").category("neuroshard-outline"))
      << remark::add("{0} lookups outlined, {1} unused ones dropped",
                     outliner.getNumLookups(), outliner.getNumDropped());
}

} // namespace
