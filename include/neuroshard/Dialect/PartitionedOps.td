//===- PartitionedOps.td - SPMD functions and device programs -*- tablegen -*-//
//
// Level 4: functions are SPMD on the local batch of one device; what differs
// from device to device is declared in device programs.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_PARTITIONEDOPS_TD
#define NEUROSHARD_DIALECT_PARTITIONEDOPS_TD

include "neuroshard/Dialect/NeuroShardBase.td"

def NeuroShard_ExchangeOp : NeuroShard_Op<"exchange",
    [Symbol, NeuroShard_SymbolUser]> {
  let summary = "all lookups of one jagged input, and their results";
  let description = [{
    The same on every device. `lookups[k]` reads the input's feature
    and gives a result of type `results[k]`.

    ```mlir
    neuroshard.exchange @ids of !ids on @plan
      lookups [#neuroshard.lookup<sum @user["user_id"]>]
      results [tensor<?x128xf32>]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<NeuroShard_JaggedType>:$input,
    FlatSymbolRefAttr:$plan,
    NeuroShard_LookupArrayAttr:$lookups,
    TypeArrayAttr:$results
  );
  let assemblyFormat = [{
    $sym_name `of` $input `on` $plan `lookups` $lookups `results` $results
    attr-dict
  }];
  let extraClassDeclaration = [{
    /// The results side by side in one tensor. Null unless all lookups are
    /// pooled, with results of one element type.
    ::mlir::RankedTensorType getJoinedResult();
  }];
  let hasVerifier = 1;
}

def NeuroShard_DeviceProgramOp : NeuroShard_Op<"device_program",
    [Symbol, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "tables and lookups of devices that run the same program";
  let description = [{
    Devices whose local tables and lookups have the same structure share one
    program; what differs between them (which shard a slot holds, its row
    offset, sizes) is bound at run time from the manifest.

    ```mlir
    neuroshard.device_program @program0 for [0, 3] {
      neuroshard.local_table 0 : 64 x f32 of 128 shards ["user_c0", "item_c1"]
      neuroshard.local_lookup pooled of 0 in @ids binds [0, 1]
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$devices);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `for` $devices attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def NeuroShard_LocalTableOp : NeuroShard_Op<"local_table",
    [HasParent<"::neuroshard::ir::DeviceProgramOp">]> {
  let summary = "one shard in a device's memory";
  let description = [{
    `slot` numbers the local tables of a program from 0. `shards[i]` names the
    shard that the program's i-th device binds to the slot. `table_dim` is the
    dim of the whole table (a row-wise mean divides by it). `two_phase`: an
    exact row-wise optimizer over column shards.

    ```mlir
    neuroshard.local_table 0 : 64 x f32 of 128 shards ["user_c0", "user_c1"] two_phase
      {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
    ```
  }];
  let arguments = (ins
    NeuroShard_I64Attr:$slot,
    NeuroShard_I64Attr:$dim,
    TypeAttr:$element_type,
    StrArrayAttr:$shards,
    NeuroShard_I64Attr:$table_dim,
    OptionalAttr<NeuroShard_OptimizerAttr>:$optimizer,
    UnitAttr:$two_phase
  );
  let assemblyFormat = [{
    $slot `:` custom<SlotShape>($dim, $element_type) `of` $table_dim `shards` $shards
    (`two_phase` $two_phase^)? attr-dict
  }];
  let hasVerifier = 1;
}

def NeuroShard_LocalLookupOp : NeuroShard_Op<"local_lookup",
    [HasParent<"::neuroshard::ir::DeviceProgramOp">, NeuroShard_SymbolUser]> {
  let summary = "one lookup on one slot";
  let description = [{
    `binds[i]` is the position of the lookup in the exchange for the program's
    i-th device. `pooled` sums a bag (a mean is divided at the batch).

    ```mlir
    neuroshard.local_lookup pooled weighted of 0 in @ids binds [0, 0]
    ```
  }];
  let arguments = (ins
    NeuroShard_I64Attr:$slot,
    FlatSymbolRefAttr:$exchange,
    DenseI64ArrayAttr:$binds,
    UnitAttr:$pooled,
    UnitAttr:$weighted
  );
  let assemblyFormat = [{
    (`pooled` $pooled^)? (`weighted` $weighted^)? `of` $slot `in` $exchange
    `binds` $binds attr-dict
  }];
  let hasVerifier = 1;
}

class NeuroShard_StepOp<string mnemonic>
    : NeuroShard_Op<mnemonic, [NeuroShard_SymbolUser, NeuroShard_Effects]>;

def NeuroShard_RouteOp : NeuroShard_StepOp<"route"> {
  let summary = "check the local ids and start sending them to their owners";
  let description = [{
    Allocates the handle, which `release` frees. A failure, such as an id
    beyond its table, is recorded on the device; all later ops of the step do
    nothing and give zeros.

    ```mlir
    %routed = neuroshard.route @exchange0(%device, %ids) : !ids
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device, FlatSymbolRefAttr:$exchange,
    NeuroShard_JaggedType:$ids);
  let results = (outs NeuroShard_RoutedType:$routed);
  let assemblyFormat = "$exchange `(` $device `,` $ids `)` attr-dict `:` qualified(type($ids))";
}

def NeuroShard_RunLookupOp : NeuroShard_StepOp<"run_lookup"> {
  let summary = "wait for ids, look up all slots, start to send partial results";
  let description = [{
    `routed` must be that of the same exchange.

    ```mlir
    %partials = neuroshard.run_lookup @exchange0(%device, %routed)
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device, FlatSymbolRefAttr:$exchange,
    NeuroShard_RoutedType:$routed);
  let results = (outs NeuroShard_PartialsType:$partials);
  let assemblyFormat = "$exchange `(` $device `,` $routed `)` attr-dict";
}

def NeuroShard_ExchangeResultsOp : NeuroShard_StepOp<"exchange_results"> {
  let summary = "wait for partial results; one tensor per lookup";
  let description = [{
    Adds partial sums in rank order, divides means, and rounds once to the
    element type of each result.

    ```mlir
    %user, %item = neuroshard.exchange_results @exchange0(%device, %routed, %partials)
      -> tensor<?x128xf32>, tensor<?x64xf32>
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device, FlatSymbolRefAttr:$exchange,
    NeuroShard_RoutedType:$routed, NeuroShard_PartialsType:$partials);
  let results = (outs Variadic<NeuroShard_RowTensor>:$results);
  let assemblyFormat = [{
    $exchange `(` $device `,` $routed `,` $partials `)` attr-dict `->` type($results)
  }];
}

def NeuroShard_ExchangeJoinedResultsOp
    : NeuroShard_StepOp<"exchange_joined_results"> {
  let summary = "wait for partial results; all lookups side by side";
  let description = [{
    The results that `exchange_results` gives, as columns of one tensor. The
    lookups must be pooled, with results of one element type.

    ```mlir
    %joined = neuroshard.exchange_joined_results @exchange0(%device, %routed, %partials)
      -> tensor<?x192xf32>
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device, FlatSymbolRefAttr:$exchange,
    NeuroShard_RoutedType:$routed, NeuroShard_PartialsType:$partials);
  let results = (outs NeuroShard_RowTensor:$result);
  let assemblyFormat = [{
    $exchange `(` $device `,` $routed `,` $partials `)` attr-dict `->` type($result)
  }];
}

def NeuroShard_ExchangeGradientsOp : NeuroShard_StepOp<"exchange_gradients"> {
  let summary = "send the gradients of all results to the owners";
  let description = [{
    One gradient per lookup of the exchange, of the type of its result.

    ```mlir
    %partials = neuroshard.exchange_gradients @exchange0(%device, %routed)
      gradients(%user, %item) : tensor<?x128xf32>, tensor<?x64xf32>
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device, FlatSymbolRefAttr:$exchange,
    NeuroShard_RoutedType:$routed, Variadic<NeuroShard_RowTensor>:$gradients);
  let results = (outs NeuroShard_PartialsType:$partials);
  let assemblyFormat = [{
    $exchange `(` $device `,` $routed `)` `gradients` `(` $gradients `)` attr-dict
    `:` type($gradients)
  }];
}

def NeuroShard_RunWeightsGradientOp : NeuroShard_StepOp<"run_weights_gradient"> {
  let summary = "gradient of per-sample weights, sent back to the samples";
  let description = [{
    Before `run_update`, which changes the rows.

    ```mlir
    %w = neuroshard.run_weights_gradient @exchange0(%device, %ids, %routed, %partials)
      : !ids -> tensor<?xf32>
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device, FlatSymbolRefAttr:$exchange,
    NeuroShard_JaggedType:$ids,
    NeuroShard_RoutedType:$routed, NeuroShard_PartialsType:$gradients);
  let results = (outs NeuroShard_WeightTensor:$result);
  let assemblyFormat = [{
    $exchange `(` $device `,` $ids `,` $routed `,` $gradients `)` attr-dict
    `:` qualified(type($ids)) `->` type($result)
  }];
}

def NeuroShard_RunUpdateOp : NeuroShard_Op<"run_update",
    [SameVariadicOperandSize, NeuroShard_SymbolUser, NeuroShard_Effects]> {
  let summary = "optimizer step of all slots";
  let description = [{
    Waits for the gradients. `routed[k]` and `gradients[k]` are of
    `exchanges[k]`; a row that several of them read has one update.

    ```mlir
    neuroshard.run_update [@exchange0] (%device) routed(%routed) gradients(%partials)
      learning_rate %lr step %step
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device,
    FlatSymbolRefArrayAttr:$exchanges,
    Variadic<NeuroShard_RoutedType>:$routed,
    Variadic<NeuroShard_PartialsType>:$gradients,
    F32:$learning_rate, I64:$step);
  let assemblyFormat = [{
    $exchanges `(` $device `)` `routed` `(` $routed `)` `gradients` `(` $gradients `)`
    `learning_rate` $learning_rate `step` $step attr-dict
  }];
  let hasVerifier = 1;
}

def NeuroShard_ReleaseOp : NeuroShard_Op<"release", [NeuroShard_Effects]> {
  let summary = "release routed ids or partial rows of a step";
  let description = [{
    Once for each handle, after its last use; `neuroshard-verify-partitioned`
    checks it.

    ```mlir
    neuroshard.release %device, %routed : !neuroshard.routed
    ```
  }];
  let arguments = (ins
    NeuroShard_DeviceType:$device,
    AnyTypeOf<[NeuroShard_RoutedType, NeuroShard_PartialsType]>:$value);
  let assemblyFormat = "$device `,` $value attr-dict `:` qualified(type($value))";
}

#endif // NEUROSHARD_DIALECT_PARTITIONEDOPS_TD
