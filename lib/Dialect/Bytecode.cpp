//===- Bytecode.cpp - Versions of the bytecode of the dialect -------------===//

#include "Bytecode.h"

#include "neuroshard/Dialect/NeuroShard.h"

using namespace mlir;
using namespace neuroshard::ir;

namespace {
struct Version : DialectVersion {
  explicit Version(uint64_t number) : number(number) {}
  uint64_t number;
};
} // namespace

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
