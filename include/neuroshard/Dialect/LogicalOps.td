//===- LogicalOps.td - Tables, ids and lookups -------------*- tablegen -*-===//
//
// Level 1: what the model means; no device.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_LOGICALOPS_TD
#define NEUROSHARD_DIALECT_LOGICALOPS_TD

include "neuroshard/Dialect/NeuroShardBase.td"

def NeuroShard_TopologyOp : NeuroShard_Op<"topology", [Symbol]> {
  let summary = "devices of a cluster and the network between them";
  let description = [{
    `devices` lists runs of equal devices, numbered consecutively; `levels` lists
    the levels of the network from the outermost (one group) to the innermost,
    whose groups lie inside those of the level before. `host_memory` is the usable
    bytes of each host, `host_disks` its disks.

    ```mlir
    neuroshard.topology @cluster
      devices [#neuroshard.devices<8 x "A100-40GB">,
               #neuroshard.devices<8 x "A100-40GB", host = 1>]
      levels [#neuroshard.level<"network", groups = [16], bandwidth = 22.0, latency = 20.0>,
              #neuroshard.level<"node", groups = [8, 8], bandwidth = 240.0, latency = 5.0>]
      host_memory [500000000000, 500000000000]
      host_disks [#neuroshard.disk<bytes = 15000000000000>, #neuroshard.disk<>]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypedArrayAttrBase<NeuroShard_DevicesAttr, "array of device runs">:$devices,
    TypedArrayAttrBase<NeuroShard_LevelAttr, "array of levels">:$levels,
    OptionalAttr<DenseI64ArrayAttr>:$host_memory,
    OptionalAttr<TypedArrayAttrBase<NeuroShard_DiskAttr, "array of disks">>:$host_disks
  );
  let assemblyFormat = [{
    $sym_name `devices` $devices `levels` $levels (`host_memory` $host_memory^)?
    (`host_disks` $host_disks^)? attr-dict
  }];
  let hasVerifier = 1;
  // Before version 4 of the bytecode there were no disks.
  let useCustomPropertiesEncoding = 1;
  let extraClassDeclaration = [{
    int64_t getNumDevices();
  }];
}

def NeuroShard_TableOp : NeuroShard_Op<"table", [Symbol]> {
  let summary = "an embedding table";
  let description = [{
    `rows x dim x element type`; any dim >= 1. Without an optimizer the table
    is not trained. `hashed` says that ids are hashed into the rows (a static
    table has one row per known id).

    ```mlir
    neuroshard.table private @user : 40000000 x 128 x f32
      {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$sym_visibility,
    ConfinedAttr<NeuroShard_I64Attr, [IntPositive]>:$rows,
    ConfinedAttr<NeuroShard_I64Attr, [IntPositive]>:$dim,
    TypeAttr:$element_type,
    OptionalAttr<NeuroShard_OptimizerAttr>:$optimizer,
    OptionalAttr<NeuroShard_AccessAttr>:$access,
    UnitAttr:$hashed
  );
  let assemblyFormat = [{
    `` custom<Visibility>($sym_visibility) $sym_name `:`
    custom<TableShape>($rows, $dim, $element_type) attr-dict
  }];
  let hasVerifier = 1;
  let builders = [
    // A private table.
    OpBuilder<(ins "::llvm::StringRef":$name, "int64_t":$rows, "int64_t":$dim,
                   "::mlir::Type":$elementType,
                   CArg<"::neuroshard::ir::OptimizerAttr", "{}">:$optimizer)>
  ];
}

def NeuroShard_PackOp : NeuroShard_PureOp<"pack", [AttrSizedOperandSegments]> {
  let summary = "jagged ids from one (ids, offsets) pair per feature";
  let description = [{
    Feature k of the result has ids `ids[k]` and offsets `offsets[k]` with
    batch + 1 entries, the first 0 and the last the number of ids
    (`include_last_offset`); all features have the same batch. Of all features
    that were unpacked, in their order, it folds to what they were unpacked from.

    ```mlir
    %j = neuroshard.pack ids(%a, %b : tensor<?xi64>, tensor<?xi64>)
           offsets(%oa, %ob : tensor<?xi64>, tensor<?xi64>)
           : !neuroshard.jagged<["a", "b"], i64>
    ```
  }];
  let arguments = (ins
    Variadic<NeuroShard_IdTensor>:$ids,
    Variadic<NeuroShard_IdTensor>:$offsets,
    Variadic<NeuroShard_WeightTensor>:$weights
  );
  let results = (outs NeuroShard_JaggedType:$result);
  let assemblyFormat = [{
    `ids` `(` $ids `:` type($ids) `)` `offsets` `(` $offsets `:` type($offsets) `)`
    (`weights` `(` $weights^ `:` type($weights) `)`)?
    attr-dict `:` qualified(type($result))
  }];
  let hasVerifier = 1;
  let builders = [
    // The type has the element type of the first ids, and weights if there are any.
    OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$features, "::mlir::ValueRange":$ids,
                   "::mlir::ValueRange":$offsets, CArg<"::mlir::ValueRange", "{}">:$weights)>
  ];
  let hasFolder = 1;
}

def NeuroShard_FromKeyedOp : NeuroShard_PureOp<"from_keyed"> {
  let summary = "jagged ids from the tensors of a KeyedJaggedTensor";
  let description = [{
    `offsets` has features x batch + 1 entries, feature-major.

    ```mlir
    %j = neuroshard.from_keyed %values, %offsets : tensor<?xi64>, tensor<?xi64>
           -> !neuroshard.jagged<["a", "b"], i64>
    ```
  }];
  let arguments = (ins
    NeuroShard_IdTensor:$ids,
    NeuroShard_IdTensor:$offsets,
    Optional<NeuroShard_WeightTensor>:$weights
  );
  let results = (outs NeuroShard_JaggedType:$result);
  let assemblyFormat = [{
    $ids `,` $offsets (`weights` $weights^)? attr-dict `:` type($ids) `,` type($offsets)
    (`,` type($weights)^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$features, "::mlir::Value":$ids,
                   "::mlir::Value":$offsets, CArg<"::mlir::Value", "{}">:$weights)>
  ];
}

def NeuroShard_UnpackOp : NeuroShard_PureOp<"unpack"> {
  let summary = "ids, offsets and weights of one feature";
  let description = [{
    Offsets have batch + 1 entries and start at 0. Of `pack`, and of `from_keyed`
    with one feature, it folds to the tensors.

    ```mlir
    %ids, %offsets = neuroshard.unpack %j["a"]
      : !neuroshard.jagged<["a", "b"], i64> -> tensor<?xi64>, tensor<?xi64>
    ```
  }];
  let arguments = (ins NeuroShard_JaggedType:$jagged, StrAttr:$feature);
  let results = (outs
    NeuroShard_IdTensor:$ids,
    NeuroShard_IdTensor:$offsets,
    Optional<NeuroShard_WeightTensor>:$weights
  );
  let assemblyFormat = [{
    $jagged `[` $feature `]` attr-dict `:` qualified(type($jagged)) `->`
    type($ids) `,` type($offsets) (`,` type($weights)^)?
  }];
  let hasVerifier = 1;
  let builders = [
    // Tensors of dynamic size; offsets are i64.
    OpBuilder<(ins "::mlir::Value":$jagged, "::llvm::StringRef":$feature)>
  ];
  let hasFolder = 1;
}

def NeuroShard_BatchSizeOp : NeuroShard_PureOp<"batch_size"> {
  let summary = "number of samples";
  let description = [{
    The same for all features. Of ids that are packed in the same function it
    is canonicalised to the number of their offsets, less one.

    ```mlir
    %n = neuroshard.batch_size %ids : !neuroshard.jagged<["user_id"], i64>
    ```
  }];
  let arguments = (ins NeuroShard_JaggedType:$jagged);
  let results = (outs Index:$size);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$jagged attr-dict `:` qualified(type($jagged))";
}

def NeuroShard_NumIdsOp : NeuroShard_PureOp<"num_ids"> {
  let summary = "number of ids of one feature, or of all, in the batch";
  let description = [{
    Of the only feature it is that of all, and canonicalised to it; of ids that
    are packed in the same function, to the size of their tensor.

    ```mlir
    %a = neuroshard.num_ids %ids["a"] : !neuroshard.jagged<["a", "b"], i64>
    %all = neuroshard.num_ids %ids : !neuroshard.jagged<["a", "b"], i64>
    ```
  }];
  let arguments = (ins NeuroShard_JaggedType:$jagged, OptionalAttr<StrAttr>:$feature);
  let results = (outs Index:$size);
  let assemblyFormat = "$jagged (`[` $feature^ `]`)? attr-dict `:` qualified(type($jagged))";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NeuroShard_LookupOp : NeuroShard_Op<"lookup",
    [NeuroShard_SymbolUser, NeuroShard_Effects, NeuroShard_ReifyShapes]> {
  let summary = "rows of a table for the bags of a feature";
  let description = [{
    `sum` and `mean` give one row per sample (zeros for an empty bag),
    `unpooled` one row per id in the order of the ids. Sums are made in f32 in
    the order of the ids and rounded once to the element type of the result,
    which does not depend on the table's. `mean` divides the sum by the number
    of ids. `weighted` multiplies each row by the sample weight of its id (sum
    only). Ids equal to `padding_idx` are left out of a bag and get no
    gradient; an unpooled lookup reads their row like any other. `stats` are measured
    statistics of the ids, for the planner. A static number of rows must be
    that of the batch, or of the unpooled ids, in every step: `neuroshard.batch`
    says the first, and a step with another number is an error.

    ```mlir
    %u = neuroshard.lookup sum @user[%ids, "user_id"]
           : !neuroshard.jagged<["user_id"], i64> -> tensor<?x128xf32>
    ```
  }];
  let arguments = (ins
    NeuroShard_PoolingAttr:$pooling,
    FlatSymbolRefAttr:$table,
    NeuroShard_JaggedType:$ids,
    StrAttr:$feature,
    UnitAttr:$weighted,
    OptionalAttr<NeuroShard_I64Attr>:$padding_idx,
    OptionalAttr<NeuroShard_FeatureAttr>:$stats
  );
  let results = (outs NeuroShard_RowTensor:$result);
  let assemblyFormat = [{
    `` $pooling $table `[` $ids `,` $feature `]` (`weighted` $weighted^)?
    (`padding_idx` $padding_idx^)? attr-dict
    `:` qualified(type($ids)) `->` type($result)
  }];
  let hasVerifier = 1;
  let builders = [
    // Gives f32, for a dynamic number of samples; sets neither weights nor padding.
    OpBuilder<(ins "::neuroshard::Pooling":$pooling, "::neuroshard::ir::TableOp":$table,
                   "::mlir::Value":$ids, "::llvm::StringRef":$feature)>
  ];
  let extraClassDeclaration = [{
    /// The lookup without its operands, for ops that do many at once.
    ::neuroshard::ir::LookupAttr getLookup();
  }];
}

def NeuroShard_UpdateOp : NeuroShard_Op<"update",
    [SameVariadicOperandSize, NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "one optimizer step of a table";
  let description = [{
    Gradient k belongs to `lookups[k]` on `ids[k]` and has the type of that
    lookup's result. The rows of the batch get one update from the gradients
    summed over all lookups, in the order (lookup, sample, position).
    `learning_rate` is f32, `step` counts from 1.

    ```mlir
    neuroshard.update @user [#neuroshard.lookup<sum @user["user_id"]>]
      ids(%ids : !neuroshard.jagged<["user_id"], i64>)
      gradients(%g : tensor<?x128xf32>) learning_rate %lr step %step
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$table,
    NeuroShard_LookupArrayAttr:$lookups,
    Variadic<NeuroShard_JaggedType>:$ids,
    Variadic<NeuroShard_RowTensor>:$gradients,
    F32:$learning_rate,
    I64:$step
  );
  let assemblyFormat = [{
    $table $lookups `ids` `(` $ids `:` qualified(type($ids)) `)`
    `gradients` `(` $gradients `:` type($gradients) `)`
    `learning_rate` $learning_rate `step` $step attr-dict
  }];
  let hasVerifier = 1;
}

def NeuroShard_WeightsGradientOp : NeuroShard_Op<"weights_gradient",
    [NeuroShard_SymbolUser, NeuroShard_Effects, NeuroShard_ReifyShapes]> {
  let summary = "gradient of the per-sample weights";
  let description = [{
    One f32 per id of the jagged value: the dot product of the row the id
    selects (before the update) with the gradient of its bag, summed over the
    weighted lookups that read it; zero where none does.

    ```mlir
    %w = neuroshard.weights_gradient %ids [#neuroshard.lookup<sum @user["user_id"] weighted>]
      gradients(%g) : !neuroshard.jagged<["user_id"], i64, weighted>, tensor<?x128xf32>
      -> tensor<?xf32>
    ```
  }];
  let arguments = (ins
    NeuroShard_JaggedType:$ids,
    NeuroShard_LookupArrayAttr:$lookups,
    Variadic<NeuroShard_RowTensor>:$gradients
  );
  let results = (outs NeuroShard_WeightTensor:$result);
  let assemblyFormat = [{
    $ids $lookups `gradients` `(` $gradients `)` attr-dict
    `:` qualified(type($ids)) `,` type($gradients) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // NEUROSHARD_DIALECT_LOGICALOPS_TD
