//===- Interfaces.cpp - Aliases of long types -----------------------------===//

#include "Interfaces.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace neuroshard::ir;

/// Distributed ids get an alias; the type of distributed rows is short.
static llvm::StringRef aliasOfDist(DistType type) {
  if (!isa<JaggedType>(type.getType()))
    return "";
  switch (type.getDistribution()) {
  case Distribution::Batch:
    return "batch_ids";
  case Distribution::Owner:
    return "owner_ids";
  case Distribution::Replica:
    return "replica_ids";
  }
  llvm_unreachable("unknown distribution");
}

AsmInterface::AliasResult AsmInterface::getAlias(Type type,
                                                 llvm::raw_ostream &os) const {
  llvm::StringRef alias =
      llvm::TypeSwitch<Type, llvm::StringRef>(type)
          .Case<JaggedType>([](JaggedType) { return "ids"; })
          .Case<PendingType>([](PendingType type) {
            return type.getTypes().empty() ? "" : "pending";
          })
          .Case<ContextType>([](ContextType type) {
            return type.getTypes().empty() ? "" : "context";
          })
          .Case<DistType>(aliasOfDist)
          .Default([](Type) { return ""; });
  if (alias.empty())
    return AliasResult::NoAlias;
  os << alias;
  return AliasResult::OverridableAlias;
}
