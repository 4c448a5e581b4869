//===- PlanPlaces.cpp - The op that a sentence is about -------------------===//

#include "PlanPlaces.h"

using namespace mlir;
using namespace neuroshard;

PlanPlaces::PlanPlaces(ir::PlanOp plan) : plan(plan.getLoc()) {
  auto module = plan->getParentOfType<ModuleOp>();
  for (ir::TableOp table : module.getOps<ir::TableOp>())
    tables.try_emplace(table.getSymName(), table.getLoc());
  for (ir::ShardOp shard : plan.getOps<ir::ShardOp>())
    shards.try_emplace(shard.getName(), shard.getLoc());
}

/// The location of the longest name that stands before a quote; a name may
/// have quotes itself.
static std::optional<Location> find(const llvm::StringMap<Location> &places,
                                    llvm::StringRef text) {
  for (size_t end = text.rfind('\''); end != llvm::StringRef::npos;
       end = text.take_front(end).rfind('\''))
    if (auto found = places.find(text.take_front(end)); found != places.end())
      return found->second;
  return std::nullopt;
}

Location PlanPlaces::of(llvm::StringRef sentence) const {
  std::optional<Location> found;
  if (sentence.consume_front("table '"))
    found = find(tables, sentence);
  else if (sentence.consume_front("shard '"))
    found = find(shards, sentence);
  return found.value_or(plan);
}

Location PlanPlaces::ofTable(llvm::StringRef name) const {
  auto found = tables.find(name);
  return found == tables.end() ? plan : found->second;
}
