//===- NeuroShardTypes.td - Types --------------------------*- tablegen -*-===//
//
// Types of the dialect, level by level.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_TYPES_TD
#define NEUROSHARD_DIALECT_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonTypeConstraints.td"
include "neuroshard/Dialect/NeuroShardDialect.td"
include "neuroshard/Dialect/NeuroShardEnums.td"

class NeuroShard_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<NeuroShard_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def NeuroShard_JaggedType : NeuroShard_Type<"Jagged", "jagged"> {
  let summary = "'!neuroshard.jagged', ids of several features for one batch";
  let description = [{
    The KeyedJaggedTensor (TBE) layout: ids feature-major, and
    `features x batch + 1` offsets (i64). Bag b of feature f is
    `ids[offsets[f * batch + b] : offsets[f * batch + b + 1]]`. With `weighted`
    there is one f32 weight per id. Ids are i32 or i64.

    ```mlir
    !neuroshard.jagged<["user", "item"], i64>
    !neuroshard.jagged<["item"], i32, weighted>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr", "feature names">:$features,
    "::mlir::Type":$idType,
    "bool":$weighted
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Position of `feature`, or nullopt; linear in the number of features.
    std::optional<int64_t> indexOf(::mlir::StringAttr feature) const;
  }];
}

class NeuroShard_BundleType<string name, string typeMnemonic>
    : NeuroShard_Type<name, typeMnemonic> {
  let parameters = (ins OptionalArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "(`<` $types^ `>`)?";
}

def NeuroShard_PendingType : NeuroShard_BundleType<"Pending", "pending"> {
  let summary = "'!neuroshard.pending', values of an embedding step that is in flight";
  let description = [{
    The start function returns it and the wait function takes it, so that a
    caller can do other work between the two.
  }];
}

def NeuroShard_ContextType : NeuroShard_BundleType<"Context", "context"> {
  let summary = "'!neuroshard.context', values that the forward keeps for the update";
  let description = [{
    The wait function returns it and the update function takes it. It holds the
    ids at their owners, bag lengths and the sort.
  }];
}

def NeuroShard_DistType : NeuroShard_Type<"Dist", "dist"> {
  let summary = "'!neuroshard.dist', a value distributed over devices by a plan";
  let description = [{
    `type` is the undistributed logical type. `batch`: every device holds the
    part for its own samples. `owner`: every device holds the part for its own
    shards, of the whole batch. `replica`: every device holds everything.
    The plan is not part of the type: MLIR's symbol utilities, such as those that
    rename and drop symbols, do not see the types of values. The function that
    begins a step names it by its attribute `neuroshard.plan`. Bytecode before
    version 9 has the plan in front of `type`; that is read and dropped.

    ```mlir
    !neuroshard.dist<tensor<?x128xf32>, owner>
    ```
  }];
  let parameters = (ins
    "::mlir::Type":$type,
    EnumParameter<NeuroShard_Distribution>:$distribution
  );
  let assemblyFormat = "`<` custom<LogicalType>($type) `,` $distribution `>`";
  let genVerifyDecl = 1;
}

def NeuroShard_RowsType : NeuroShard_Type<"Rows", "rows"> {
  let summary = "'!neuroshard.rows', summed gradients of the unique rows of a batch, with norms";
  let description = [{
    Passed between the two phases of an exact optimizer that needs norms of whole
    rows, over column shards.
  }];
}

def NeuroShard_DeviceType : NeuroShard_Type<"Device", "device"> {
  let summary = "'!neuroshard.device', handle of the device an SPMD function runs on";
  let description = [{
    An argument of every function at the partitioned level that takes part in a
    step. Each device passes its own: what differs between devices, such as their
    shards, is found through it at run time.
  }];
}

def NeuroShard_RoutedType : NeuroShard_Type<"Routed", "routed"> {
  let summary = "'!neuroshard.routed', ids of one step on their way to and at their owners";
  let description = [{
    Made by `neuroshard.route` and freed by `neuroshard.release`. It keeps the bag
    lengths and the permutations by which results find their samples, and
    gradients their rows.
  }];
}

def NeuroShard_PartialsType : NeuroShard_Type<"Partials", "partials"> {
  let summary = "'!neuroshard.partials', f32 rows of one step at their owners, in exchange layout";
  let description = [{
    Made by `neuroshard.run_lookup`, as results on their way to the samples, and by
    `neuroshard.exchange_gradients`, as gradients on their way to the owners; freed
    by `neuroshard.release`. Results of a table that is cut by rows are partial
    sums.
  }];
}

def NeuroShard_QuantizedType : NeuroShard_Type<"Quantized", "quantized"> {
  let summary = "element type of a table that is served, in 8 or 4 bits";
  let description = [{
    `int8` and `int4`: a row has an f16 scale and an f16 bias in front of its
    elements, and a value is scale x element + bias. `fp8`: a sign, 4 bits of
    exponent with bias 7, 3 of mantissa. All are FBGEMM's formats. Such a table
    has no optimizer, and its lookups give f32, f16 or bf16.

    ```mlir
    neuroshard.table private @user : 40000000 x 128 x !neuroshard.quantized<int8>
    ```
  }];
  let parameters = (ins "::neuroshard::ElementType":$format);
  let hasCustomAssemblyFormat = 1;
}

def NeuroShard_IdTensor : 1DTensorOf<[I32, I64]>;
def NeuroShard_WeightTensor : 1DTensorOf<[F32]>;
def NeuroShard_RowTensor : 2DTensorOf<[F32, F16, BF16]>;

#endif // NEUROSHARD_DIALECT_TYPES_TD
