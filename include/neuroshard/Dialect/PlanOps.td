//===- PlanOps.td - The plan and its shards ----------------*- tablegen -*-===//
//
// Level 2: placement.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_PLANOPS_TD
#define NEUROSHARD_DIALECT_PLANOPS_TD

include "neuroshard/Dialect/NeuroShardBase.td"

def NeuroShard_PlanOp : NeuroShard_Op<"plan",
    [Symbol, NeuroShard_SymbolUser, SingleBlock, NoTerminator,
     NoRegionArguments]> {
  let summary = "placement of all tables";
  let description = [{
    Nothing else in a module says where data is. Shards of one table do not
    overlap; a plan may be partial before `neuroshard-plan`, which keeps what is
    there and plans the rest around it. `semantics` says what row-wise
    optimizers mean on column shards: `exact` (one state per row, as without
    sharding) or `per_shard`. `provenance` records how the plan was made.

    ```mlir
    neuroshard.plan @plan on @cluster semantics exact {
      neuroshard.shard "user_c0" of @user rows [0, 1000) cols [0, 64) on [0]
      neuroshard.shard "user_c1" of @user rows [0, 1000) cols [64, 128) on [1]
      neuroshard.pin @item on [1]
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    FlatSymbolRefAttr:$topology,
    DefaultValuedAttr<NeuroShard_OptimizerSemanticsAttr,
      "::neuroshard::OptimizerSemantics::Exact">:$semantics,
    OptionalAttr<DictionaryAttr>:$provenance
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `on` $topology `semantics` `` $semantics
    (`provenance` $provenance^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def NeuroShard_ShardOp : NeuroShard_Op<"shard",
    [HasParent<"::neuroshard::ir::PlanOp">, NeuroShard_SymbolUser]> {
  let summary = "a rectangle of a table and its devices";
  let description = [{
    Rows and columns are half-open ranges. Inner column boundaries are
    multiples of 4; the last shard may have any width. Each of its devices holds
    a copy of the shard. A whole table on all devices is replicated: ids stay
    where the batch is. Of other copies each rank reads the nearest: its own,
    else one in its group of the topology's innermost level, else any; where
    there are several, ranks share them evenly. `tier` is `hbm` (default), `dram`,
    the memory of a GPU's host, or `ssd`, a file on the host's disks; the last
    two have a `cache` of so many rows in device memory, whose `policy` is `lru`
    (default) or `lfu` (for target torchrec-1.9 `dram` has none). `route` says how
    pooled results, and their gradients, travel between the groups of the topology's
    innermost level: `direct`, by `relay` (each group adds its partial sums up
    and sends one row on, each device of it a part), or `auto` (default: by relay
    where devices of one group have partial sums of the same columns). All
    shards of a table have one route. With `sync_every` k the copies of a shard
    drift: each applies the gradients of its readers alone, times the number of
    copies, and weights and optimizer states are averaged over the copies after
    each k-th step. This is not exact; all shards of the table have it.

    ```mlir
    neuroshard.shard "user" of @user rows [0, 1000) cols [0, 64) on [0] tier dram cache 64
    neuroshard.shard "page" of @page rows [0, 1000) cols [0, 64) on [0] tier ssd cache 96 policy lfu
    neuroshard.shard "item" of @item rows [0, 90) cols [0, 64) on [1] route relay
    neuroshard.shard "tag" of @tag rows [0, 30) cols [0, 64) on [0, 2]
    neuroshard.shard "word" of @word rows [0, 80) cols [0, 64) on [0, 2] sync_every 100
    ```
  }];
  let arguments = (ins
    StrAttr:$name,
    FlatSymbolRefAttr:$table,
    NeuroShard_I64Attr:$row_begin, NeuroShard_I64Attr:$row_end,
    NeuroShard_I64Attr:$col_begin, NeuroShard_I64Attr:$col_end,
    DenseI64ArrayAttr:$devices,
    DefaultValuedAttr<NeuroShard_TierAttr,
      "::neuroshard::Tier::Hbm">:$tier,
    DefaultValuedAttr<NeuroShard_I64Attr, "0">:$cache,
    DefaultValuedAttr<NeuroShard_CachePolicyAttr,
      "::neuroshard::CachePolicy::Lru">:$policy,
    DefaultValuedAttr<NeuroShard_RouteAttr,
      "::neuroshard::Route::Auto">:$route,
    DefaultValuedAttr<NeuroShard_I64Attr, "0">:$sync_every
  );
  let assemblyFormat = [{
    $name `of` $table `rows` custom<HalfOpen>($row_begin, $row_end)
    `cols` custom<HalfOpen>($col_begin, $col_end) `on` $devices
    (`tier` `` $tier^)? (`cache` $cache^)? (`policy` `` $policy^)? (`route` `` $route^)?
    (`sync_every` $sync_every^)? attr-dict
  }];
  let hasVerifier = 1;
  // Version 1 of the bytecode had no route, version 2 no cache, version 7 no
  // sync_every.
  let useCustomPropertiesEncoding = 1;
  let extraClassDeclaration = [{
    int64_t getNumRows() { return getRowEnd() - getRowBegin(); }
    int64_t getWidth() { return getColEnd() - getColBegin(); }
    bool hasCopies() { return getDevices().size() > 1; }
    CacheSpec getCacheSpec() {
      return {getCache(), getPolicy()};
    }
    SyncedCopies getSyncedCopies() {
      return {getSyncEvery(),
              static_cast<int64_t>(getDevices().size())};
    }
    /// A whole table on all devices whose copies do not drift.
    bool isReplicated(TableOp table, TopologyOp topology);
  }];
}

def NeuroShard_PinOp : NeuroShard_Op<"pin",
    [HasParent<"::neuroshard::ir::PlanOp">, NeuroShard_SymbolUser]> {
  let summary = "restrict a table to some devices";
  let description = [{
    All shards of the table lie on some of these devices. The planner keeps it,
    and its verifier refuses shards elsewhere.

    ```mlir
    neuroshard.pin @item on [0, 1]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$table, DenseI64ArrayAttr:$devices);
  let assemblyFormat = "$table `on` $devices attr-dict";
  let hasVerifier = 1;
}

#endif // NEUROSHARD_DIALECT_PLANOPS_TD
