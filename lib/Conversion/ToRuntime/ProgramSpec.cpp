//===- ProgramSpec.cpp - From a device program to its kernels -------------===//

#include "ProgramSpec.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Support/OptionText.h"
#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace neuroshard {

static SlotSpec describe(ir::LocalTableOp table) {
  SlotSpec slot;
  slot.dim = table.getDim();
  slot.element = elementTypeOf(table.getElementType());
  // With one phase, a row-wise state is the mean over the shard's own columns.
  slot.tableDim = table.getTwoPhase() ? table.getTableDim() : table.getDim();
  slot.twoPhase = table.getTwoPhase();
  if (std::optional<ir::OptimizerAttr> optimizer = table.getOptimizer())
    slot.optimizer = optimizer->getOptimizer();
  return slot;
}

/// Sets which slots hold replicated or copied shards. Only lookups name the
/// plan; without any nothing reads a slot.
static void describeShards(ProgramSpec &spec, ir::DeviceProgramOp program,
                           const SymbolTable &symbols) {
  auto lookups = program.getOps<ir::LocalLookupOp>();
  if (lookups.empty())
    return;
  auto exchange = symbols.lookup<ir::ExchangeOp>(
      (*lookups.begin()).getExchangeAttr().getAttr());
  auto plan = symbols.lookup<ir::PlanOp>(exchange.getPlanAttr().getAttr());
  auto topology =
      symbols.lookup<ir::TopologyOp>(plan.getTopologyAttr().getAttr());
  llvm::StringMap<ir::ShardOp> shards;
  for (auto shard : plan.getOps<ir::ShardOp>())
    shards[shard.getName()] = shard;
  for (auto [slot, table] :
       llvm::zip_equal(spec.slots, program.getOps<ir::LocalTableOp>()))
    for (auto name : table.getShards().getAsRange<StringAttr>())
      if (ir::ShardOp shard = shards.lookup(name.getValue());
          shard && shard.hasCopies()) {
        auto whole =
            symbols.lookup<ir::TableOp>(shard.getTableAttr().getAttr());
        slot.replicated |= shard.isReplicated(whole, topology);
      }
}

static IdType idTypeOfKernels(ir::ExchangeOp exchange,
                              const SymbolTable &symbols) {
  auto plan = symbols.lookup<ir::PlanOp>(exchange.getPlanAttr().getAttr());
  auto topology =
      symbols.lookup<ir::TopologyOp>(plan.getTopologyAttr().getAttr());
  int64_t mostRows = 0;
  for (auto lookup : exchange.getLookups().getAsRange<ir::LookupAttr>()) {
    auto table = symbols.lookup<ir::TableOp>(lookup.getTable().getAttr());
    mostRows = std::max<int64_t>(mostRows, table.getRows());
  }
  auto input = cast<ir::JaggedType>(exchange.getInput());
  return packedIdType(idTypeOf(input.getIdType()), mostRows,
                      topology.getNumDevices());
}

FailureOr<ir::DeviceProgramOp> findProgram(ModuleOp module, StringRef name) {
  name = symbolOption(name);
  auto programs = llvm::to_vector(module.getOps<ir::DeviceProgramOp>());
  if (programs.empty())
    return emitError(module.getLoc(),
                     "the module has no device program: the conversion to the "
                     "runtime takes partitioned IR");
  if (name.empty() && programs.size() == 1)
    return programs.front();
  for (ir::DeviceProgramOp program : programs)
    if (program.getSymName() == name)
      return program;
  InFlightDiagnostic diagnostic =
      name.empty()
          ? emitError(module.getLoc(), "the module has several device programs")
          : emitError(module.getLoc(), "the module has no device program '")
                << printable(name) << "'";
  diagnostic << "; 'program' must be one of";
  for (ir::DeviceProgramOp program : programs)
    diagnostic << " @" << printable(program.getSymName());
  return diagnostic;
}

ProgramSpec describeProgram(ir::DeviceProgramOp program) {
  ProgramSpec spec;
  auto module = program->getParentOfType<ModuleOp>();
  for (auto table : program.getOps<ir::LocalTableOp>())
    spec.slots.push_back(describe(table));
  SymbolTable symbols(module);
  llvm::DenseMap<StringAttr, IdType> idTypes;
  for (auto exchange : module.getOps<ir::ExchangeOp>())
    idTypes[exchange.getSymNameAttr()] = idTypeOfKernels(exchange, symbols);
  for (auto op : program.getOps<ir::LocalLookupOp>()) {
    LookupSpec lookup;
    lookup.slot = op.getSlot();
    lookup.id = idTypes.at(op.getExchangeAttr().getAttr());
    lookup.pooled = op.getPooled();
    lookup.weighted = op.getWeighted();
    spec.lookups.push_back(lookup);
    if (lookup.weighted)
      spec.slots[lookup.slot].weighted = true;
  }
  describeShards(spec, program, symbols);
  module.walk(
      [&](ir::RunWeightsGradientOp) { spec.hasWeightGradients = true; });
  return spec;
}

} // namespace neuroshard
