//===- NeuroShardEnums.td - The dialect's own enumerations -*- tablegen -*-===//
//
// Those of Model are in ModelEnums.td.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_ENUMS_TD
#define NEUROSHARD_DIALECT_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def NeuroShard_Distribution
    : I32EnumAttr<"Distribution", "how devices share a value", [
  I32EnumAttrCase<"Batch", 0, "batch">,
  I32EnumAttrCase<"Owner", 1, "owner">,
  I32EnumAttrCase<"Replica", 2, "replica">
]> {
  let cppNamespace = "::neuroshard::ir";
  let genSpecializedAttr = 0;
}

#endif // NEUROSHARD_DIALECT_ENUMS_TD
