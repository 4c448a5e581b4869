//===- ShardedOps.td - Operations on distributed values ----*- tablegen -*-===//
//
// Level 3: the step on distributed values. The ops do not depend on the number
// of devices; the plan says which device holds which part.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_SHARDEDOPS_TD
#define NEUROSHARD_DIALECT_SHARDEDOPS_TD

include "neuroshard/Dialect/NeuroShardBase.td"

def NeuroShard_ScatterBatchOp : NeuroShard_PureOp<"scatter_batch"> {
  let summary = "split a batch over the devices";
  let description = [{
    The first `batch mod devices` devices get one sample more than the others.
    Of `gather_batch` it folds to the distributed value.

    ```mlir
    %b = neuroshard.scatter_batch %ids : !ids -> !neuroshard.dist<!ids, batch>
    ```
  }];
  let arguments = (ins AnyType:$input);
  let results = (outs NeuroShard_DistType:$result);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input)) `->` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NeuroShard_GatherBatchOp : NeuroShard_PureOp<"gather_batch"> {
  let summary = "collect all samples, in the order of the batch";
  let description = [{
    The reverse of `scatter_batch`; of one it folds to the batch.

    ```mlir
    %u = neuroshard.gather_batch %r
      : !neuroshard.dist<tensor<?x128xf32>, batch> -> tensor<?x128xf32>
    ```
  }];
  let arguments = (ins NeuroShard_DistType:$input);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$input attr-dict `:` qualified(type($input)) `->` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

class NeuroShard_Collective<string mnemonic, list<Trait> traits = []>
    : NeuroShard_Op<mnemonic,
        !listconcat(traits, [NeuroShard_SymbolUser, NeuroShard_Effects])>;

def NeuroShard_DistributeIdsOp : NeuroShard_Collective<"distribute_ids"> {
  let summary = "send ids to the devices with their rows (batch -> owner or replica)";
  let description = [{
    Every owner of a shard of a looked-up table gets, from all devices, the ids
    of that lookup's feature that fall into its rows, made relative to them; a
    copy of a shard from those that read it.
    `replica`: every device gets all ids, in rank order.

    ```mlir
    %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @user["user_id"]>]
      : !neuroshard.dist<!ids, batch> -> !neuroshard.dist<!ids, owner>
    ```
  }];
  let arguments = (ins NeuroShard_DistType:$ids, NeuroShard_LookupArrayAttr:$lookups);
  let results = (outs NeuroShard_DistType:$result);
  let assemblyFormat = "$ids $lookups attr-dict `:` qualified(type($ids)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def NeuroShard_FusedLookupOp : NeuroShard_Op<"fused_lookup",
    [NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "look up many tables at once, on the devices with their rows";
  let description = [{
    With ids at their owners the results are partial (`owner`): the columns and
    the sums over the rows that the owner has, in f32. With ids at the batch
    all tables are replicated and the results are final (`batch`).

    ```mlir
    %p = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @user["user_id"]>]
      : !neuroshard.dist<!ids, owner>
      -> !neuroshard.dist<tensor<?x128xf32>, owner>
    ```
  }];
  let arguments = (ins NeuroShard_DistType:$ids, NeuroShard_LookupArrayAttr:$lookups);
  let results = (outs Variadic<NeuroShard_DistType>:$partials);
  let assemblyFormat = [{
    $ids $lookups attr-dict `:` qualified(type($ids))
    `->` qualified(type($partials))
  }];
  let hasVerifier = 1;
}

def NeuroShard_CombineOp : NeuroShard_Collective<"combine"> {
  let summary = "send partial results back to their samples (owner -> batch)";
  let description = [{
    Columns of column shards are put side by side; partial sums of row shards
    travel as f32 and are added in rank order; a mean is divided afterwards by
    the full number of ids; unpooled rows return to the order of their ids. `ids` are the ids at the
    batch, for bag lengths and order.

    ```mlir
    %r = neuroshard.combine %b partials(%p) [#neuroshard.lookup<sum @user["user_id"]>]
      : !neuroshard.dist<!ids, batch>, !neuroshard.dist<tensor<?x128xf32>, owner>
      -> !neuroshard.dist<tensor<?x128xf32>, batch>
    ```
  }];
  let arguments = (ins
    NeuroShard_DistType:$ids,
    Variadic<NeuroShard_DistType>:$partials,
    NeuroShard_LookupArrayAttr:$lookups
  );
  let results = (outs Variadic<NeuroShard_DistType>:$results);
  let assemblyFormat = [{
    $ids `partials` `(` $partials `)` $lookups attr-dict
    `:` qualified(type($ids)) `,` qualified(type($partials))
    `->` qualified(type($results))
  }];
  let hasVerifier = 1;
}

def NeuroShard_DistributeGradientsOp
    : NeuroShard_Collective<"distribute_gradients"> {
  let summary = "send gradients to the devices with their rows (batch -> owner or replica)";
  let description = [{
    The reverse of `combine`: each owner gets its columns for the whole batch;
    mean has divided by the number of ids before.

    ```mlir
    %o = neuroshard.distribute_gradients %b gradients(%g) [#neuroshard.lookup<sum @user["user_id"]>]
      : !neuroshard.dist<!ids, batch>, !neuroshard.dist<tensor<?x128xf32>, batch>
      -> !neuroshard.dist<tensor<?x128xf32>, owner>
    ```
  }];
  let arguments = (ins
    NeuroShard_DistType:$ids,
    Variadic<NeuroShard_DistType>:$gradients,
    NeuroShard_LookupArrayAttr:$lookups
  );
  let results = (outs Variadic<NeuroShard_DistType>:$results);
  let assemblyFormat = [{
    $ids `gradients` `(` $gradients `)` $lookups attr-dict
    `:` qualified(type($ids)) `,` qualified(type($gradients))
    `->` qualified(type($results))
  }];
  let hasVerifier = 1;
}

def NeuroShard_FusedUpdateOp : NeuroShard_Op<"fused_update",
    [SameVariadicOperandSize, NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "one optimizer step of many tables, on the devices with their rows";
  let description = [{
    As `update`, on ids and gradients at their owners (or replicas). `ids[k]`
    and `gradients[k]` belong to `lookups[k]`. Tables with copied shards, and
    exact row-wise optimizers over column shards, need `reduce_rows`.

    ```mlir
    neuroshard.fused_update [#neuroshard.lookup<sum @user["user_id"]>]
      ids(%o : !neuroshard.dist<!ids, owner>)
      gradients(%g : !neuroshard.dist<tensor<?x128xf32>, owner>)
      learning_rate %lr step %step
    ```
  }];
  let arguments = (ins
    Variadic<NeuroShard_DistType>:$ids,
    Variadic<NeuroShard_DistType>:$gradients,
    NeuroShard_LookupArrayAttr:$lookups,
    F32:$learning_rate,
    I64:$step
  );
  let assemblyFormat = [{
    $lookups `ids` `(` $ids `:` qualified(type($ids)) `)`
    `gradients` `(` $gradients `:` qualified(type($gradients)) `)`
    `learning_rate` $learning_rate `step` $step attr-dict
  }];
  let hasVerifier = 1;
}

def NeuroShard_ReduceRowsOp : NeuroShard_Op<"reduce_rows",
    [SameVariadicOperandSize, NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "sum the gradients of each unique row, with the norm of its columns";
  let description = [{
    First phase of the update of tables that exchange something in between:
    copies of shards their sums (`exchange_copies`), column shards their norms
    (`exchange_norms`) where an exact optimizer needs those of whole rows:
    row-wise ones, LARS and LAMB. It reads the tables: norms of trust ratios, and
    of gradients with weight decay, are also of weights. `apply_rows` is the last.

    ```mlir
    %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @user["user_id"]>]
      ids(%o : !neuroshard.dist<!ids, owner>)
      gradients(%g : !neuroshard.dist<tensor<?x128xf32>, owner>)
      -> !neuroshard.dist<!neuroshard.rows, owner>
    ```
  }];
  let arguments = (ins
    Variadic<NeuroShard_DistType>:$ids,
    Variadic<NeuroShard_DistType>:$gradients,
    NeuroShard_LookupArrayAttr:$lookups
  );
  let results = (outs NeuroShard_DistType:$rows);
  let assemblyFormat = [{
    $lookups `ids` `(` $ids `:` qualified(type($ids)) `)`
    `gradients` `(` $gradients `:` qualified(type($gradients)) `)` attr-dict
    `->` qualified(type($rows))
  }];
  let hasVerifier = 1;
}

def NeuroShard_ExchangeCopiesOp
    : NeuroShard_Collective<"exchange_copies", [AllTypesMatch<["rows", "result"]>]> {
  let summary = "add the sums of all copies of a shard, in the order of their devices";
  let description = [{
    Each copy has the gradients of the ranks that read it. Afterwards each has
    the rows that any copy had, with the same sums and norms.

    ```mlir
    %all = neuroshard.exchange_copies %rows [@tag]
      : !neuroshard.dist<!neuroshard.rows, owner>
    ```
  }];
  let arguments = (ins NeuroShard_DistType:$rows, FlatSymbolRefArrayAttr:$tables);
  let results = (outs NeuroShard_DistType:$result);
  let assemblyFormat = "$rows $tables attr-dict `:` qualified(type($rows))";
  let hasVerifier = 1;
}

def NeuroShard_ExchangeNormsOp
    : NeuroShard_Collective<"exchange_norms", [AllTypesMatch<["rows", "result"]>]> {
  let summary = "add the norms of the column shards of a row, in column order";
  let description = [{
    Afterwards every column shard of a row has the norms of the whole row, so
    that an exact optimizer treats it as without sharding.

    ```mlir
    %whole = neuroshard.exchange_norms %rows [@user]
      : !neuroshard.dist<!neuroshard.rows, owner>
    ```
  }];
  let arguments = (ins NeuroShard_DistType:$rows, FlatSymbolRefArrayAttr:$tables);
  let results = (outs NeuroShard_DistType:$result);
  let assemblyFormat = "$rows $tables attr-dict `:` qualified(type($rows))";
  let hasVerifier = 1;
}

def NeuroShard_ApplyRowsOp : NeuroShard_Op<"apply_rows",
    [NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "last phase of an update that begins with reduce_rows";
  let description = [{
    Applies the optimizer to each unique row, with its summed gradient and the
    norms that were exchanged.

    ```mlir
    neuroshard.apply_rows %whole [@user] learning_rate %lr step %step
      : !neuroshard.dist<!neuroshard.rows, owner>
    ```
  }];
  let arguments = (ins
    NeuroShard_DistType:$rows,
    FlatSymbolRefArrayAttr:$tables,
    F32:$learning_rate,
    I64:$step
  );
  let assemblyFormat = [{
    $rows $tables `learning_rate` $learning_rate `step` $step attr-dict
    `:` qualified(type($rows))
  }];
  let hasVerifier = 1;
}

def NeuroShard_FusedWeightsGradientOp : NeuroShard_Op<"fused_weights_gradient",
    [NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "gradient of per-sample weights, on the devices with the rows";
  let description = [{
    As `weights_gradient`, on ids and gradients at their owners. The dot
    products of a column shard are partial; `combine_weights_gradient` adds
    them up.

    ```mlir
    %p = neuroshard.fused_weights_gradient %o gradients(%g)
      [#neuroshard.lookup<sum @user["user_id"] weighted>]
      : !neuroshard.dist<!ids, owner>, !neuroshard.dist<tensor<?x128xf32>, owner>
      -> !neuroshard.dist<tensor<?xf32>, owner>
    ```
  }];
  let arguments = (ins
    NeuroShard_DistType:$ids,
    Variadic<NeuroShard_DistType>:$gradients,
    NeuroShard_LookupArrayAttr:$lookups
  );
  let results = (outs NeuroShard_DistType:$partial);
  let assemblyFormat = [{
    $ids `gradients` `(` $gradients `)` $lookups attr-dict
    `:` qualified(type($ids)) `,` qualified(type($gradients))
    `->` qualified(type($partial))
  }];
  let hasVerifier = 1;
}

def NeuroShard_CombineWeightsGradientOp
    : NeuroShard_Collective<"combine_weights_gradient"> {
  let summary = "send gradients of per-sample weights back to their samples";
  let description = [{
    Partial dot products of column shards are added in rank order.

    ```mlir
    %w = neuroshard.combine_weights_gradient %b partials(%p)
      [#neuroshard.lookup<sum @user["user_id"] weighted>]
      : !neuroshard.dist<!ids, batch>, !neuroshard.dist<tensor<?xf32>, owner>
      -> !neuroshard.dist<tensor<?xf32>, batch>
    ```
  }];
  let arguments = (ins
    NeuroShard_DistType:$ids,
    Variadic<NeuroShard_DistType>:$partials,
    NeuroShard_LookupArrayAttr:$lookups
  );
  let results = (outs NeuroShard_DistType:$result);
  let assemblyFormat = [{
    $ids `partials` `(` $partials `)` $lookups attr-dict
    `:` qualified(type($ids)) `,` qualified(type($partials))
    `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

#endif // NEUROSHARD_DIALECT_SHARDEDOPS_TD
