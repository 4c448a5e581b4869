//===- DevicePrograms.cpp - One program for each kind of device -----------===//

#include "Partitioner.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

namespace {

/// A lookup of a table, by its exchange and its position there.
struct TableLookup {
  const Exchange *exchange;
  unsigned position;
  LookupAttr lookup;
};

class ProgramBuilder {
public:
  ProgramBuilder(const PlacedTables &placement, ArrayRef<Exchange> exchanges,
                 bool training);

  /// Devices with equal structures share a program.
  Attribute structureOf(ArrayRef<ShardOp> slots);
  void create(StringAttr name, ArrayRef<int64_t> devices,
              ArrayRef<ArrayRef<ShardOp>> slotsOfDevice, SymbolTable &symbols);

private:
  OptimizerAttr optimizerOf(const TablePlacement &table) {
    return training ? TableOp(table.table).getOptimizerAttr() : OptimizerAttr();
  }
  bool isTwoPhase(const TablePlacement &table) {
    return training && table.twoPhase;
  }
  ArrayRef<TableLookup> lookupsOf(ShardOp shard) {
    return lookups[shard.getTableAttr().getAttr()];
  }

  const PlacedTables &placement;
  bool training;
  OpBuilder builder;
  llvm::DenseMap<StringAttr, SmallVector<TableLookup>> lookups;
};

ProgramBuilder::ProgramBuilder(const PlacedTables &placement,
                               ArrayRef<Exchange> exchanges, bool training)
    : placement(placement), training(training),
      builder(PlanOp(placement.plan).getContext()) {
  // After the exchanges, which follow the plan.
  Operation *last = PlanOp(placement.plan);
  while (isa_and_nonnull<ExchangeOp>(last->getNextNode()))
    last = last->getNextNode();
  builder.setInsertionPointAfter(last);
  for (const Exchange &exchange : exchanges)
    for (auto [position, attribute] : llvm::enumerate(exchange.lookups)) {
      auto lookup = cast<LookupAttr>(attribute);
      lookups[lookup.getTable().getAttr()].push_back(
          {&exchange, static_cast<unsigned>(position), lookup});
    }
}

Attribute ProgramBuilder::structureOf(ArrayRef<ShardOp> slots) {
  SmallVector<Attribute> structure;
  for (ShardOp shard : slots) {
    const TablePlacement &table = placement[shard.getTableAttr().getAttr()];
    OptimizerAttr optimizer = optimizerOf(table);
    TableOp op = table.table;
    structure.push_back(builder.getArrayAttr(
        {builder.getI64IntegerAttr(shard.getWidth()), op.getElementTypeAttr(),
         optimizer ? Attribute(optimizer) : builder.getUnitAttr(),
         op.getDimAttr(), builder.getBoolAttr(isTwoPhase(table))}));
    for (const TableLookup &use : lookupsOf(shard))
      structure.push_back(builder.getArrayAttr(
          {use.exchange->name,
           builder.getBoolAttr(use.lookup.getPooling() == Pooling::None),
           builder.getBoolAttr(use.lookup.getWeighted())}));
  }
  return builder.getArrayAttr(structure);
}

void ProgramBuilder::create(StringAttr name, ArrayRef<int64_t> devices,
                            ArrayRef<ArrayRef<ShardOp>> slotsOfDevice,
                            SymbolTable &symbols) {
  Location loc = PlanOp(placement.plan).getLoc();
  auto program = DeviceProgramOp::create(builder, loc, name, devices);
  symbols.insert(program);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  for (auto [slot, first] : llvm::enumerate(slotsOfDevice.front())) {
    ShardOp shard = first;
    const TablePlacement &table = placement[shard.getTableAttr().getAttr()];
    TableOp op = table.table;
    SmallVector<Attribute> names;
    for (ArrayRef<ShardOp> slots : slotsOfDevice)
      names.push_back(ShardOp(slots[slot]).getNameAttr());
    LocalTableOp::create(builder, shard.getLoc(), slot, shard.getWidth(),
                         op.getElementType(), builder.getArrayAttr(names),
                         op.getDim(), optimizerOf(table), isTwoPhase(table));
    for (auto [index, use] : llvm::enumerate(lookupsOf(shard))) {
      SmallVector<int64_t> binds;
      for (ArrayRef<ShardOp> slots : slotsOfDevice)
        binds.push_back(lookupsOf(slots[slot])[index].position);
      LocalLookupOp::create(
          builder, shard.getLoc(), slot, use.exchange->name.getAttr(), binds,
          use.lookup.getPooling() != Pooling::None, use.lookup.getWeighted());
    }
  }
}

} // namespace

std::pair<unsigned, unsigned>
neuroshard::createDevicePrograms(const PlacedTables &placement,
                                 ArrayRef<Exchange> exchanges, bool training) {
  TopologyOp topology = placement.topology;
  PlanOp plan = placement.plan;
  SmallVector<SmallVector<ShardOp>> slots(topology.getNumDevices());
  unsigned numSlots = 0;
  for (auto shard : plan.getOps<ShardOp>())
    for (int64_t device : shard.getDevices()) {
      slots[device].push_back(shard);
      ++numSlots;
    }

  ProgramBuilder builder(placement, exchanges, training);
  // Shards of one structure get neighbouring slots, so that devices with the
  // same shards in another order share a program.
  llvm::DenseMap<Attribute, unsigned> rankOfStructure;
  llvm::DenseMap<Operation *, unsigned> rankOfShard;
  for (auto shard : plan.getOps<ShardOp>())
    rankOfShard[shard] =
        rankOfStructure
            .try_emplace(builder.structureOf(shard), rankOfStructure.size())
            .first->second;
  for (SmallVector<ShardOp> &mine : slots)
    llvm::stable_sort(mine, [&](ShardOp a, ShardOp b) {
      return rankOfShard.at(a) < rankOfShard.at(b);
    });

  llvm::MapVector<Attribute, SmallVector<int64_t>> programs;
  for (auto [device, mine] : llvm::enumerate(slots))
    programs[builder.structureOf(mine)].push_back(device);
  SymbolTable symbols(plan->getParentOp());
  for (auto [index, program] : llvm::enumerate(programs)) {
    SmallVector<ArrayRef<ShardOp>> slotsOfDevice;
    for (int64_t device : program.second)
      slotsOfDevice.push_back(slots[device]);
    auto name =
        StringAttr::get(plan->getContext(), "program" + llvm::Twine(index));
    builder.create(name, program.second, slotsOfDevice, symbols);
  }
  return {programs.size(), numSlots};
}
