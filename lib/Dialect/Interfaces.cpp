//===- Interfaces.cpp - Printing aliases and bytecode versions ------------===//

#include "Interfaces.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace neuroshard::ir;

namespace {
struct Version : DialectVersion {
  explicit Version(uint64_t number) : number(number) {}
  uint64_t number;
};
} // namespace

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

void BytecodeInterface::writeVersion(DialectBytecodeWriter &writer) const {
  writer.writeVarInt(NeuroShardDialect::kBytecodeVersion);
}

std::unique_ptr<DialectVersion>
BytecodeInterface::readVersion(DialectBytecodeReader &reader) const {
  uint64_t number = 0;
  if (failed(reader.readVarInt(number)))
    return nullptr;
  if (number == 0 || number > NeuroShardDialect::kBytecodeVersion) {
    reader.emitError("neuroshard bytecode has version ")
        << number << ", this build reads versions 1 to "
        << NeuroShardDialect::kBytecodeVersion;
    return nullptr;
  }
  return std::make_unique<Version>(number);
}

LogicalResult
BytecodeInterface::upgradeFromVersion(Operation *,
                                      const DialectVersion &) const {
  // Version 1 is the first; there is nothing to upgrade from yet.
  return success();
}
