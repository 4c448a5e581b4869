//===- ModelEnums.td - Model's enumerations as attributes --*- tablegen -*-===//
//
// The enumerations are defined in include/neuroshard/Model; ModelEnums.h has the
// functions that attributes call. Nothing is generated from this file alone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_MODELENUMS_TD
#define NEUROSHARD_DIALECT_MODELENUMS_TD

include "mlir/IR/EnumAttr.td"
include "neuroshard/Dialect/NeuroShardDialect.td"

class NeuroShard_ModelEnum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::neuroshard";
  let genSpecializedAttr = 0;
}

def NeuroShard_Pooling
    : NeuroShard_ModelEnum<"Pooling", "how the rows of a bag are combined", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Mean", 1, "mean">,
  I32EnumAttrCase<"None", 2, "unpooled">
]>;

def NeuroShard_OptimizerKind
    : NeuroShard_ModelEnum<"OptimizerKind", "sparse optimizer", [
  I32EnumAttrCase<"SGD", 0, "sgd">,
  I32EnumAttrCase<"Adagrad", 1, "adagrad">,
  I32EnumAttrCase<"RowWiseAdagrad", 2, "rowwise_adagrad">,
  I32EnumAttrCase<"Adam", 3, "adam">,
  I32EnumAttrCase<"Momentum", 4, "momentum">,
  I32EnumAttrCase<"AdamW", 5, "adamw">,
  I32EnumAttrCase<"PartialRowWiseAdam", 6, "partial_rowwise_adam">,
  I32EnumAttrCase<"RowWiseRMSprop", 7, "rowwise_rmsprop">,
  I32EnumAttrCase<"FTRL", 8, "ftrl">,
  I32EnumAttrCase<"LARS", 9, "lars_sgd">,
  I32EnumAttrCase<"LAMB", 10, "lamb">,
  I32EnumAttrCase<"PartialRowWiseLAMB", 11, "partial_rowwise_lamb">,
  I32EnumAttrCase<"RowWiseAdagradWithCounter", 12,
                  "rowwise_adagrad_with_counter">
]>;

def NeuroShard_WeightDecayMode
    : NeuroShard_ModelEnum<"WeightDecayMode", "where weight decay goes", [
  I32EnumAttrCase<"Default", 0, "default">,
  I32EnumAttrCase<"L2", 1, "l2">,
  I32EnumAttrCase<"Decoupled", 2, "decoupled">,
  I32EnumAttrCase<"AdagradW", 3, "adagradw">
]>;

def NeuroShard_OptimizerSemantics
    : NeuroShard_ModelEnum<"OptimizerSemantics",
                           "meaning of row-wise optimizers on column shards", [
  I32EnumAttrCase<"Exact", 0, "exact">,
  I32EnumAttrCase<"PerShard", 1, "per_shard">
]>;

def NeuroShard_Tier
    : NeuroShard_ModelEnum<"Tier", "memory that holds a shard", [
  I32EnumAttrCase<"Hbm", 0, "hbm">,
  I32EnumAttrCase<"Dram", 1, "dram">,
  I32EnumAttrCase<"Ssd", 2, "ssd">
]>;

def NeuroShard_CachePolicy
    : NeuroShard_ModelEnum<"CachePolicy", "which row leaves a full cache", [
  I32EnumAttrCase<"Lru", 0, "lru">,
  I32EnumAttrCase<"Lfu", 1, "lfu">
]>;

def NeuroShard_Route
    : NeuroShard_ModelEnum<"Route", "how results travel between groups", [
  I32EnumAttrCase<"Auto", 0, "auto">,
  I32EnumAttrCase<"Direct", 1, "direct">,
  I32EnumAttrCase<"Relay", 2, "relay">
]>;

class NeuroShard_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<NeuroShard_Dialect, info, mnemonic> {
  let cppNamespace = NeuroShard_Dialect.cppNamespace;
  let assemblyFormat = "$value";
}

def NeuroShard_PoolingAttr : NeuroShard_EnumAttr<NeuroShard_Pooling, "pooling">;
def NeuroShard_OptimizerSemanticsAttr
    : NeuroShard_EnumAttr<NeuroShard_OptimizerSemantics, "semantics">;
def NeuroShard_TierAttr : NeuroShard_EnumAttr<NeuroShard_Tier, "tier">;
def NeuroShard_CachePolicyAttr
    : NeuroShard_EnumAttr<NeuroShard_CachePolicy, "cache_policy">;
def NeuroShard_RouteAttr : NeuroShard_EnumAttr<NeuroShard_Route, "route">;

#endif // NEUROSHARD_DIALECT_MODELENUMS_TD
