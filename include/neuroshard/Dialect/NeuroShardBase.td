//===- NeuroShardBase.td - What all op files include -------*- tablegen -*-===//
//
// Common includes and operand constraints of the op definitions.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_BASE_TD
#define NEUROSHARD_DIALECT_BASE_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "neuroshard/Dialect/NeuroShardAttributes.td"
include "neuroshard/Dialect/NeuroShardTypes.td"

class NeuroShard_PureOp<string mnemonic, list<Trait> traits = []>
    : NeuroShard_Op<mnemonic, !listconcat(traits, [Pure])>;

// As I64Attr, with accessors and builders that take and give int64_t.
def NeuroShard_I64Attr
    : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit signless integer attribute">;

// Anonymous, so that the reference names MLIR's interfaces and not these.
defvar NeuroShard_SymbolUser = DeclareOpInterfaceMethods<SymbolUserOpInterface>;
defvar NeuroShard_Effects = DeclareOpInterfaceMethods<MemoryEffectsOpInterface>;
defvar NeuroShard_ReifyShapes =
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>;

#endif // NEUROSHARD_DIALECT_BASE_TD
