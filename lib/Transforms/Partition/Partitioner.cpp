//===- Partitioner.cpp - SPMD step functions ------------------------------===//

#include "Partitioner.h"

#include "Sharding/Bundles.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

/// Gives a function the device it runs on as first argument.
static Value addDevice(func::FuncOp function) {
  auto type = DeviceType::get(function.getContext());
  LogicalResult added =
      function.insertArgument(0, type, DictionaryAttr(), function.getLoc());
  (void)added; // Fails only for external functions.
  return function.getArgument(0);
}

/// The ops of a body that a rewriting replaces, in order.
static SmallVector<Operation *> opsBefore(func::FuncOp function,
                                          Operation *kept) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    if (&op != kept)
      ops.push_back(&op);
  return ops;
}

static void eraseAll(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}

SmallVector<Exchange *> Partitioner::exchangesWithIds() {
  SmallVector<Exchange *> found;
  for (Exchange &exchange : exchanges)
    if (exchange.weightsGradient)
      found.push_back(&exchange);
  return found;
}

void Partitioner::createExchanges(PlanOp plan) {
  OpBuilder builder(plan->getContext());
  builder.setInsertionPointAfter(plan);
  SymbolTable symbols(plan->getParentOp());
  for (auto [index, exchange] : llvm::enumerate(exchanges)) {
    auto op = ExchangeOp::create(
        builder, step.start.getArgument(exchange.input).getLoc(),
        ("exchange" + llvm::Twine(index)).str(), exchange.type,
        plan.getSymName(), builder.getArrayAttr(exchange.lookups),
        builder.getTypeArrayAttr(exchange.results));
    op->remove();
    symbols.insert(op, builder.getInsertionPoint());
    exchange.name = FlatSymbolRefAttr::get(op.getSymNameAttr());
  }
}

void Partitioner::partitionStart() {
  SmallVector<Operation *> old = opsBefore(step.start, step.suspend);
  Value device = addDevice(step.start);
  OpBuilder builder(step.suspend);
  auto routedType = RoutedType::get(builder.getContext());
  auto idsOf = [&](const Exchange &exchange) {
    return step.start.getArgument(exchange.input + 1);
  };
  SmallVector<Value> carried;
  for (const Exchange &exchange : exchanges) {
    Value ids = idsOf(exchange);
    carried.push_back(RouteOp::create(builder, ids.getLoc(), routedType, device,
                                      exchange.name, ids));
  }
  for (Exchange *exchange : exchangesWithIds())
    carried.push_back(idsOf(*exchange));
  rebundle(step.suspend, carried);
  eraseAll(old);
}

void Partitioner::addLookup() {
  Location loc = step.wait.getLoc();
  OpBuilder builder(step.wait);
  MLIRContext *context = builder.getContext();
  PendingType pending = step.suspend.getBundle().getType();
  SmallVector<Type> types(pending.getTypes());
  types.append(exchanges.size(), PartialsType::get(context));
  lookup = func::FuncOp::create(
      builder, loc, kLookupName,
      builder.getFunctionType({DeviceType::get(context), pending},
                              PendingType::get(context, types)));
  Block *body = lookup.addEntryBlock();
  builder.setInsertionPointToStart(body);
  auto resume =
      ResumeOp::create(builder, loc, pending.getTypes(), body->getArgument(1));
  SmallVector<Value> carried(resume.getValues());
  for (auto [exchange, routed] : llvm::zip(exchanges, resume.getValues()))
    carried.push_back(
        RunLookupOp::create(builder, loc, PartialsType::get(context),
                            body->getArgument(0), exchange.name, routed));
  Value bundle =
      SuspendOp::create(builder, loc, lookup.getResultTypes().front(), carried);
  func::ReturnOp::create(builder, loc, bundle);
}

void Partitioner::partitionWait() {
  SmallVector<Operation *> old = opsBefore(step.wait, step.save);
  Value device = addDevice(step.wait);
  step.wait.getArgument(1).setType(lookup.getResultTypes().front());
  step.wait.setType(FunctionType::get(
      step.wait.getContext(), step.wait.getBody().front().getArgumentTypes(),
      step.wait.getResultTypes()));
  auto resume = recreateUnbundle(step.resume);
  Location loc = step.wait.getLoc();
  Operation *terminator = step.wait.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  if (step.save)
    builder.setInsertionPoint(step.save);
  ValueRange saved = resume.getValues().drop_back(exchanges.size());
  ValueRange partialsOf = resume.getValues().take_back(exchanges.size());
  for (auto [exchange, routed, partials] :
       llvm::zip(exchanges, saved, partialsOf)) {
    auto results =
        ExchangeResultsOp::create(builder, loc, exchange.results, device,
                                  exchange.name, routed, partials);
    ReleaseOp::create(builder, loc, device, partials);
    if (!step.isTraining())
      ReleaseOp::create(builder, loc, device, routed);
    for (auto [position, result] :
         llvm::zip(exchange.positions, results.getResults()))
      terminator->setOperand(position, result);
  }
  if (step.save)
    rebundle(step.save, saved);
  eraseAll(old);
  step.resume = resume;
}

/// Copies wait, which has nothing but exchanges by now.
void Partitioner::addJoinedWait() {
  if (exchanges.size() != 1)
    return;
  auto module = step.wait->getParentOfType<ModuleOp>();
  RankedTensorType type =
      module.lookupSymbol<ExchangeOp>(exchanges[0].name).getJoinedResult();
  if (!type)
    return;
  OpBuilder builder(step.wait->getContext());
  builder.setInsertionPointAfter(step.wait);
  auto joined = cast<func::FuncOp>(builder.clone(*step.wait));
  joined.setName(kJoinedWaitName);
  joined.removeResAttrsAttr();
  Operation *terminator = joined.getBody().front().getTerminator();
  ExchangeResultsOp apart = *joined.getOps<ExchangeResultsOp>().begin();
  builder.setInsertionPoint(apart);
  SmallVector<Value> results = {ExchangeJoinedResultsOp::create(
      builder, apart.getLoc(), type, apart.getDevice(), apart.getExchangeAttr(),
      apart.getRouted(), apart.getPartials())};
  if (step.isTraining())
    results.push_back(terminator->getOperands().back());
  terminator->setOperands(results);
  apart.erase();
  joined.setType(builder.getFunctionType(joined.getArgumentTypes(),
                                         ValueRange(results).getTypes()));
}

func::FuncOp Partitioner::addGradients() {
  Location loc = step.update.getLoc();
  OpBuilder builder(step.update);
  MLIRContext *context = builder.getContext();
  auto partialsType = PartialsType::get(context);
  SmallVector<Type> inputs = {DeviceType::get(context)};
  // As the update has them now, but for the learning rate and the step.
  llvm::append_range(inputs, step.update.getArgumentTypes().drop_back(2));
  SmallVector<Type> inFlight(exchanges.size(), RoutedType::get(context));
  inFlight.append(llvm::count_if(exchanges,
                                 [](const Exchange &exchange) {
                                   return exchange.needsGradients();
                                 }),
                  partialsType);
  SmallVector<Type> outputs(step.update.getResultTypes());
  outputs.push_back(PendingType::get(context, inFlight));
  auto function = func::FuncOp::create(
      builder, loc, kGradientsName, builder.getFunctionType(inputs, outputs));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Value device = body->getArgument(0);
  auto saved = cast<ContextType>(inputs[1]);
  auto restore =
      RestoreOp::create(builder, loc, saved.getTypes(), body->getArgument(1));
  ValueRange routed = restore.getValues().take_front(exchanges.size());
  SmallVector<Value> carried(routed);
  llvm::SmallDenseMap<Exchange *, Value> partialsOf, idsOf;
  for (auto [exchange, ids] : llvm::zip(exchanges, routed)) {
    if (!exchange.needsGradients())
      continue;
    SmallVector<Value> mine =
        llvm::map_to_vector(exchange.positions, [&](unsigned i) -> Value {
          return body->getArgument(i + 2);
        });
    Value partials = ExchangeGradientsOp::create(
        builder, loc, partialsType, device, exchange.name, ids, mine);
    partialsOf[&exchange] = partials;
    carried.push_back(partials);
  }
  for (auto [exchange, ids] :
       llvm::zip(exchangesWithIds(),
                 restore.getValues().drop_front(exchanges.size())))
    idsOf[exchange] = ids;
  SmallVector<Value> results;
  for (auto [exchange, type] :
       llvm::zip(weightsResults, step.update.getResultTypes()))
    results.push_back(RunWeightsGradientOp::create(
        builder, loc, type, device, exchange->name, idsOf[exchange],
        routed[exchange - exchanges.data()], partialsOf[exchange]));
  results.push_back(SuspendOp::create(builder, loc, outputs.back(), carried));
  func::ReturnOp::create(builder, loc, results);
  return function;
}

void Partitioner::partitionUpdate() {
  func::FuncOp gradients = addGradients();
  Type pending = gradients.getResultTypes().back();
  Location loc = step.update.getLoc();
  func::FuncOp whole = step.update;
  OpBuilder builder(whole);
  step.update = func::FuncOp::create(
      builder, loc, kUpdateName,
      builder.getFunctionType({gradients.getArgumentTypes().front(), pending,
                               builder.getF32Type(), builder.getI64Type()},
                              {}));
  whole.erase();
  Block *body = step.update.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Value device = body->getArgument(0);
  auto inFlight =
      ResumeOp::create(builder, loc, cast<PendingType>(pending).getTypes(),
                       body->getArgument(1));
  ValueRange routed = inFlight.getValues().take_front(exchanges.size());
  ValueRange partials = inFlight.getValues().drop_front(exchanges.size());
  SmallVector<Attribute> names;
  SmallVector<Value> trainedIds, trainedGradients;
  for (auto [exchange, ids] : llvm::zip(exchanges, routed)) {
    if (!exchange.needsGradients())
      continue;
    Value own = partials.front();
    partials = partials.drop_front();
    if (!exchange.trained)
      continue;
    names.push_back(exchange.name);
    trainedIds.push_back(ids);
    trainedGradients.push_back(own);
  }
  if (!names.empty())
    RunUpdateOp::create(builder, loc, device, builder.getArrayAttr(names),
                        trainedIds, trainedGradients, body->getArgument(2),
                        body->getArgument(3));
  for (Value value : llvm::reverse(inFlight.getValues()))
    ReleaseOp::create(builder, loc, device, value);
  func::ReturnOp::create(builder, loc, ValueRange());
}

/// Releases what a context holds that no update takes.
static void lowerDiscard(DiscardOp discard, Value device) {
  OpBuilder builder(discard);
  auto restore = RestoreOp::create(builder, discard.getLoc(),
                                   discard.getContext().getType().getTypes(),
                                   discard.getContext());
  for (Value value : restore.getValues())
    if (isa<RoutedType>(value.getType()))
      ReleaseOp::create(builder, discard.getLoc(), device, value);
  discard.erase();
}

/// Looks rows up as soon as their ids are on the way, so that results travel
/// during the work between start and wait. No update is called there.
static void callLookup(func::FuncOp lookup, func::CallOp wait) {
  Value device = wait.getOperand(0), pending = wait.getOperand(1);
  OpBuilder builder(wait);
  if (pending.getParentBlock() == wait->getBlock())
    builder.setInsertionPointAfterValue(pending);
  auto call = func::CallOp::create(builder, wait.getLoc(), lookup,
                                   ValueRange{device, pending});
  wait.setOperand(1, call.getResult(0));
}

void Partitioner::partitionCallers() {
  for (func::FuncOp caller : callers) {
    Value device = addDevice(caller);
    SmallVector<DiscardOp> discards;
    SmallVector<func::CallOp> waits;
    caller.walk([&](Operation *op) {
      if (auto discard = dyn_cast<DiscardOp>(op))
        discards.push_back(discard);
      auto call = dyn_cast<func::CallOp>(op);
      if (!call ||
          (call.getCallee() != kStartName && call.getCallee() != kWaitName))
        return;
      call->insertOperands(0, device);
      if (call.getCallee() == kWaitName)
        waits.push_back(call);
    });
    for (DiscardOp discard : discards)
      lowerDiscard(discard, device);
    for (func::CallOp wait : waits)
      callLookup(lookup, wait);
  }
}
