//===- NeuroShardEnums.td - Enumerations -------------------*- tablegen -*-===//
//
// Enumerations of the dialect; names are the field's own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_ENUMS_TD
#define NEUROSHARD_DIALECT_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class NeuroShard_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::neuroshard::ir";
  let genSpecializedAttr = 0;
}

def NeuroShard_Pooling : NeuroShard_Enum<"Pooling", "how a bag becomes a row", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Mean", 1, "mean">,
  I32EnumAttrCase<"Unpooled", 2, "unpooled">
]>;

def NeuroShard_OptimizerKind : NeuroShard_Enum<"OptimizerKind", "sparse optimizer", [
  I32EnumAttrCase<"SGD", 0, "sgd">,
  I32EnumAttrCase<"Adagrad", 1, "adagrad">,
  I32EnumAttrCase<"RowWiseAdagrad", 2, "rowwise_adagrad">,
  I32EnumAttrCase<"Adam", 3, "adam">
]>;

def NeuroShard_OptimizerSemantics
    : NeuroShard_Enum<"OptimizerSemantics",
                      "meaning of row-wise optimizers on column shards", [
  I32EnumAttrCase<"Exact", 0, "exact">,
  I32EnumAttrCase<"PerShard", 1, "per_shard">
]>;

def NeuroShard_Distribution : NeuroShard_Enum<"Distribution", "who holds which part", [
  I32EnumAttrCase<"Batch", 0, "batch">,
  I32EnumAttrCase<"Owner", 1, "owner">,
  I32EnumAttrCase<"Replica", 2, "replica">
]>;

def NeuroShard_MemoryTier : NeuroShard_Enum<"MemoryTier", "memory a shard lives in", [
  I32EnumAttrCase<"Hbm", 0, "hbm">,
  I32EnumAttrCase<"Dram", 1, "dram">
]>;

class NeuroShard_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<NeuroShard_Dialect, info, mnemonic>;

def NeuroShard_PoolingAttr : NeuroShard_EnumAttr<NeuroShard_Pooling, "pooling"> {
  let assemblyFormat = "$value";
}
def NeuroShard_OptimizerSemanticsAttr
    : NeuroShard_EnumAttr<NeuroShard_OptimizerSemantics, "semantics"> {
  let assemblyFormat = "$value";
}
def NeuroShard_MemoryTierAttr : NeuroShard_EnumAttr<NeuroShard_MemoryTier, "tier"> {
  let assemblyFormat = "$value";
}

#endif // NEUROSHARD_DIALECT_ENUMS_TD
