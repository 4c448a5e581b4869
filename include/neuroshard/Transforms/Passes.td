//===- Passes.td - Logical to partitioned ------------------*- tablegen -*-===//
//
// The passes between the levels of the dialect, and those that verify a level.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_PASSES
#define NEUROSHARD_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def RaiseLookups : Pass<"neuroshard-raise-lookups", "::mlir::ModuleOp"> {
  let summary = "Make tables and lookups of what other dialects spell out";
  let description = [{
    Rows that are gathered from an argument of a function, a constant or a
    global become lookups of a `neuroshard.table`, with the sums, means and
    weights behind them. The forms that are known are on the page raising.md of
    the documentation. A table that was an argument of a function no longer is
    one. Functions that take a table and are called are brought into their
    callers first.

    What looks like a lookup and cannot be raised stays as it is, and is named with
    the reason in a remark of the category `neuroshard-raise-lookups`, or, with
    `strict`, in an error.

    ```mlir
    // Before:
    func.func @forward(%user: tensor<1000x64xf32>, %ids: tensor<?x3x1xi64>) -> tensor<?x64xf32> {
      %rows = tensor.gather %user[%ids] gather_dims([0])
        : (tensor<1000x64xf32>, tensor<?x3x1xi64>) -> tensor<?x3x64xf32>
      %sums = linalg.reduce {arith.addf} ins(%rows : tensor<?x3x64xf32>)
        outs(%zeros : tensor<?x64xf32>) dimensions = [1]
      return %sums : tensor<?x64xf32>
    }
    // After:
    neuroshard.table private @user : 1000 x 64 x f32
    func.func @forward(%ids: tensor<?x3x1xi64>) -> tensor<?x64xf32> {
      %flat = tensor.collapse_shape %ids ...
      %offsets = tensor.generate ... // 0, 3, 6, ...
      %j = neuroshard.pack ids(%flat : tensor<?xi64>) offsets(%offsets : tensor<?xi64>)
        : !neuroshard.jagged<["ids"], i64>
      %sums = neuroshard.lookup sum @user[%j, "ids"]
        : !neuroshard.jagged<["ids"], i64> -> tensor<?x64xf32>
      return %sums : tensor<?x64xf32>
    }
    ```
  }];
  let options = [
    Option<"strict", "strict", "bool", /*default=*/"false",
      "Whether a lookup that cannot be raised is an error.">,
    Option<"assumeValidInputs", "assume-valid-inputs", "bool", /*default=*/"false",
      "Whether ids are rows of their tables and offsets begin at 0: ids of StableHLO are then "
      "not moved into the table, and offsets of loops are used as they are.">,
    Option<"jaggedArguments", "jagged-arguments", "bool", /*default=*/"false",
      "Whether ids, offsets and weights that are arguments for one feature alone become one "
      "jagged argument, of which each sample may have any number of ids.">,
    Option<"weightsFile", "weights-file", "std::string", /*default=*/"",
      "A safetensors file to write, with the rows of the tables that were constants. Without it "
      "these are not raised.">
  ];
  let statistics = [
    Statistic<"numRaised", "raised", "Number of lookups made">,
    Statistic<"numTables", "tables", "Number of tables made">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def KeepEntry : Pass<"neuroshard-keep-entry", "::mlir::ModuleOp"> {
  let summary = "Erase the functions with lookups that are not the entry";
  let description = [{
    A plan and the step functions made by it serve one entry function. In a
    module with several functions that have lookups, the option `entry` names
    the one to compile. The others are erased, so that the plan is made for the
    lookups of the entry alone; one that a remaining function calls is an error.
    Without the option nothing changes.

    ```mlir
    // Before, with entry=train:
    func.func @train(%ids: !ids) -> tensor<?x64xf32> { ... neuroshard.lookup ... }
    func.func @score(%ids: !ids) -> tensor<?x64xf32> { ... neuroshard.lookup ... }
    // After:
    func.func @train(%ids: !ids) -> tensor<?x64xf32> { ... neuroshard.lookup ... }
    ```
  }];
  let options = [
    Option<"entry", "entry", "std::string", /*default=*/"",
      "Function to keep. Default: all are kept.">
  ];
}

def Outline : Pass<"neuroshard-outline", "::mlir::ModuleOp"> {
  let summary = "Move all lookups into a start and a wait function";
  let description = [{
    A caller can do other work between the two. The call of start comes right
    after the definition of the ids, the call of wait right before the first use
    of a result; ids that are made later than that move up if they can. Lookups
    without a used result are dropped. All lookups must be in the top block of the
    entry function, which nothing calls (`--inline` brings those of called
    functions there): every device takes part in every lookup. With the option
    `entry` other functions with lookups are erased as by
    `neuroshard-keep-entry`.

    ```mlir
    // Before:
    func.func @forward(%dense: tensor<?x13xf32>, %ids: !ids) -> tensor<?x1xf32> {
      %bottom = ... %dense
      %u = neuroshard.lookup sum @user[%ids, "user_id"] : !ids -> tensor<?x128xf32>
      %top = ... %bottom, %u
    // After:
    func.func @forward(%dense: tensor<?x13xf32>, %ids: !ids) -> tensor<?x1xf32> {
      %p = call @embeddings_start(%ids) : (!ids) -> !neuroshard.pending<!ids>
      %bottom = ... %dense
      %u = call @embeddings_wait(%p) : (!neuroshard.pending<!ids>) -> tensor<?x128xf32>
      %top = ... %bottom, %u
    func.func @embeddings_start(%ids: !ids) -> !neuroshard.pending<!ids> {
      %p = neuroshard.suspend %ids : !ids -> !neuroshard.pending<!ids>
      return %p : !neuroshard.pending<!ids>
    }
    func.func @embeddings_wait(%p: !neuroshard.pending<!ids>) -> tensor<?x128xf32> {
      %ids = neuroshard.resume %p : !neuroshard.pending<!ids> -> !ids
      %u = neuroshard.lookup sum @user[%ids, "user_id"] : !ids -> tensor<?x128xf32>
      return %u : tensor<?x128xf32>
    }
    ```
  }];
  let options = [
    Option<"entry", "entry", "std::string", /*default=*/"",
      "Function whose lookups to move. Default: the only one that has any.">
  ];
  let statistics = [
    Statistic<"numOutlined", "outlined", "Number of lookups moved">,
    Statistic<"numDropped", "dropped", "Number of unused lookups dropped">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect",
                           "::mlir::func::FuncDialect"];
}

def Differentiate : Pass<"neuroshard-differentiate", "::mlir::ModuleOp"> {
  let summary = "Add the update function, for training";
  let description = [{
    `@embeddings_wait` gets a last result, the context, and
    `@embeddings_update` takes it with one gradient per lookup, learning rate
    and step (from 1). It first computes the gradients of per-sample weights,
    one for each jagged input that a weighted lookup reads, and returns them;
    then it makes one step of every table that has an optimizer. The host's
    automatic differentiation calls it; the entry function discards its
    context.

    ```mlir
    // Before:
    func.func @embeddings_wait(%p: !neuroshard.pending<!ids>) -> tensor<?x128xf32> {
      %ids = neuroshard.resume %p : !neuroshard.pending<!ids> -> !ids
      %u = neuroshard.lookup sum @user[%ids, "user_id"] : !ids -> tensor<?x128xf32>
      return %u : tensor<?x128xf32>
    }
    // After:
    func.func @embeddings_wait(%p: !neuroshard.pending<!ids>)
        -> (tensor<?x128xf32>, !neuroshard.context<!ids>) {
      %ids = neuroshard.resume %p : !neuroshard.pending<!ids> -> !ids
      %u = neuroshard.lookup sum @user[%ids, "user_id"] : !ids -> tensor<?x128xf32>
      %c = neuroshard.save %ids : !ids -> !neuroshard.context<!ids>
      return %u, %c : tensor<?x128xf32>, !neuroshard.context<!ids>
    }
    func.func @embeddings_update(%c: !neuroshard.context<!ids>,
        %g: tensor<?x128xf32>, %lr: f32, %step: i64) {
      %ids = neuroshard.restore %c : !neuroshard.context<!ids> -> !ids
      neuroshard.update @user [#neuroshard.lookup<sum @user["user_id"]>]
        ids(%ids : !ids) gradients(%g : tensor<?x128xf32>) learning_rate %lr step %step
      return
    }
    ```
  }];
  let statistics = [
    Statistic<"numTrained", "trained", "Number of tables with an update">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect",
                           "::mlir::func::FuncDialect"];
}

def Shard : Pass<"neuroshard-shard", "::mlir::ModuleOp"> {
  let summary = "Rewrite the step functions on values distributed by a plan";
  let description = [{
    Ids of a sharded table go to the owners of its rows, results come back and
    are combined; replicated tables are looked up where the samples are, and
    updated from the ids and gradients of all samples. Rows travel as f32. A
    row-wise optimizer with exact semantics whose table is split by columns is
    updated in two phases. Each op does one lookup or table; `neuroshard-fuse`
    merges them. The plan must cover every table; `@embeddings_start` names it
    afterwards, by the attribute `neuroshard.plan`.

    ```mlir
    // Before:
    func.func @embeddings_wait(%p: !neuroshard.pending<!ids>) -> tensor<?x128xf32> {
      %ids = neuroshard.resume %p : !neuroshard.pending<!ids> -> !ids
      %u = neuroshard.lookup sum @user[%ids, "user_id"] : !ids -> tensor<?x128xf32>
    // After (!b and !o are !ids distributed by batch and by owner):
    func.func @embeddings_wait(%p: !neuroshard.pending<!b, !o>) -> tensor<?x128xf32> {
      %b, %o = neuroshard.resume %p : !neuroshard.pending<!b, !o> -> !b, !o
      %partial = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @user["user_id"]>]
        : !o -> !neuroshard.dist<tensor<?x128xf32>, owner>
      %r = neuroshard.combine %b partials(%partial) [#neuroshard.lookup<sum @user["user_id"]>]
        : !b, !neuroshard.dist<tensor<?x128xf32>, owner>
        -> !neuroshard.dist<tensor<?x128xf32>, batch>
      %u = neuroshard.gather_batch %r
        : !neuroshard.dist<tensor<?x128xf32>, batch> -> tensor<?x128xf32>
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", /*default=*/"",
      "Plan to follow. Default: the only one of the module.">
  ];
  let statistics = [
    Statistic<"numSharded", "sharded", "Number of lookups at owners">,
    Statistic<"numReplicated", "replicated", "Number of lookups of replicated tables">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

def Fuse : Pass<"neuroshard-fuse", "::mlir::ModuleOp"> {
  let summary = "Merge lookups and tables into few ops";
  let description = [{
    In each step function one op remains for all lookups that read the same
    ids, for all gradients that go the same way, for all updates at owners and
    for all at replicas, and for each phase of exact row-wise optimizers: one
    collective and one launch instead of many. The values that start and wait
    return for them are merged, too. The order of lookups is kept. Names of tables
    appear in the IR, devices do not, so it grows with tables, not devices.

    ```mlir
    // Before:
    %o0 = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @user["user_id"]>] : !b -> !o
    %o1 = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @item["item_id"]>] : !b -> !o
    %p = neuroshard.suspend %b, %o0, %o1 : !b, !o, !o -> !neuroshard.pending<!b, !o, !o>
    // After:
    %o = neuroshard.distribute_ids %b
      [#neuroshard.lookup<sum @user["user_id"]>, #neuroshard.lookup<sum @item["item_id"]>]
      : !b -> !o
    %p = neuroshard.suspend %b, %o : !b, !o -> !neuroshard.pending<!b, !o>
    ```
  }];
  let statistics = [
    Statistic<"numMerged", "merged", "Number of ops merged into another">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect",
                           "::mlir::func::FuncDialect"];
}

def Partition : Pass<"neuroshard-partition", "::mlir::ModuleOp"> {
  let summary = "Make the functions SPMD and declare each device's program";
  let description = [{
    Every function of the step and the entry function get the device they run
    on as first argument, and work on its part of the batch. Each jagged input
    of start becomes an `exchange` with all lookups that read it, in the order
    of wait's results; the ops on distributed values become the steps of
    exchanges, and the runtime's buffers are released at the end of the step.
    Rows are looked up in a function of their own, `embeddings_lookup`, which
    also starts to send the results; callers of wait call it as soon as they
    have what start returns. The update is split likewise:
    `embeddings_gradients` starts to send gradients and returns those of
    per-sample weights, `embeddings_update` takes what is in flight and applies
    the optimizers. Where there is one exchange of pooled lookups with results
    of one element type, `embeddings_wait_joined` is a wait that gives them side
    by side in one tensor. The context keeps ids only where gradients of per-sample
    weights need their number.

    Each device gets its shards as slots, those of one structure together, and
    a lookup for each exchange lookup of a slot's table. Devices whose slots and
    lookups have the same structure share one `device_program`.

    Whatever else the entry function computes now runs on the local batch of
    each device. It must therefore act on every sample by itself: a mean over
    the batch, say, would be a mean over the local batch. The pass cannot check
    this in general. On more than one device it refuses entry functions with a
    result that has a static number of samples or no dimension for them, and,
    without `local-reductions`, ops of linalg that reduce over the samples of a
    pooled lookup, as far as it can follow them through ops of linalg, tensor
    and arith.

    ```mlir
    // Before:
    func.func @embeddings_start(%ids: !ids) -> !neuroshard.pending<!b, !o> {
      %b = neuroshard.scatter_batch %ids : !ids -> !b
      %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @user["user_id"]>] : !b -> !o
      %p = neuroshard.suspend %b, %o : !b, !o -> !neuroshard.pending<!b, !o>
      return %p : !neuroshard.pending<!b, !o>
    }
    // After:
    neuroshard.exchange @exchange0 of !ids on @plan
      lookups [#neuroshard.lookup<sum @user["user_id"]>]
      results [tensor<?x128xf32>]
    neuroshard.device_program @program0 for [0, 1] {
      neuroshard.local_table 0 : 64 x f32 of 128 shards ["user_c0", "user_c1"]
      neuroshard.local_lookup pooled of 0 in @exchange0 binds [0, 0]
    }
    func.func @embeddings_start(%device: !neuroshard.device, %ids: !ids)
        -> !neuroshard.pending<!neuroshard.routed> {
      %r = neuroshard.route @exchange0(%device, %ids) : !ids
      %p = neuroshard.suspend %r : !neuroshard.routed -> !neuroshard.pending<!neuroshard.routed>
      return %p : !neuroshard.pending<!neuroshard.routed>
    }
    ```
  }];
  let options = [
    Option<"localReductions", "local-reductions", "bool", /*default=*/"false",
           "Allow reductions over the samples: each device reduces over its "
           "part of the batch">
  ];
  let statistics = [
    Statistic<"numPrograms", "programs", "Number of distinct device programs">,
    Statistic<"numSlots", "slots", "Number of slots of all devices together">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect",
                           "::mlir::func::FuncDialect"];
}

def TopologyFromGrid
    : Pass<"neuroshard-topology-from-grid", "::mlir::ModuleOp"> {
  let summary = "Make the topology that MLIR's shard.grid means";
  let description = [{
    For a module whose devices are an MLIR `shard.grid`. Devices are numbered
    row by row, as `shard.process_linear_index` numbers them: those that differ
    in the last axis alone are neighbours.

    Each axis is a level of the topology, the first the outermost. The groups of
    a level hold the devices that agree in all axes before it; its link joins
    members of a group that differ in the axis. Links and memory, which a grid
    does not have, are those of the device class: an axis whose groups fit into
    a node of the class has the links of a node, the others have the network.
    Axes of size 1 make no level, and of neighbouring levels with the same link
    the outer one stays: with H200s, of which 8 are a node, `2x4` is the
    topology `8xH200`, `4x2x8` is `8x8xH200`. If even the groups of the last
    axis are larger than a node, they are cut into nodes: `16` is `16xH200`.
    Each node is a host.

    `bandwidth` and `latency` replace the links of the class. With `bandwidth`
    no groups are cut into nodes.

    A module without a grid does not change, nor does one with a topology; with
    `device-class` that topology must be the grid's. The grid remains; the
    conversions to native code drop it if nothing refers to it. The pipelines
    from the logical level run this pass unless they get a `topology`.

    ```mlir
    // Before, with device-class=H200:
    shard.grid @mesh(shape = 2x8)
    // After:
    neuroshard.topology @cluster
      devices [#neuroshard.devices<8 x "H200">, #neuroshard.devices<8 x "H200", host = 1>]
      levels [#neuroshard.level<"cluster", groups = [16], bandwidth = 45.0, latency = 30.0>,
              #neuroshard.level<"node", groups = [8, 8], bandwidth = 350.0, latency = 15.0>]
      host_memory [2199023255552, 2199023255552]
    shard.grid @mesh(shape = 2x8)
    ```
  }];
  let options = [
    Option<"deviceClass", "device-class", "std::string", /*default=*/"",
      "Class of all devices, such as H200, or MYCARD@cards.json of a file; see "
      "docs/device-classes.md">,
    Option<"memory", "memory", "std::string", /*default=*/"",
      "Usable memory of each device, such as 40GiB; default: of its class">,
    Option<"nodeSize", "node-size", "int", /*default=*/"0",
      "Devices that share a host, at most; 0: as many as in a node of the "
      "class">,
    Option<"grid", "grid", "std::string", /*default=*/"",
      "Symbol of the grid; may be left out if there is only one">,
    ListOption<"bandwidth", "bandwidth", "double",
      "Bandwidth of the link along each axis in GB/s, per device and "
      "direction, from the first axis to the last; default: of the class">,
    ListOption<"latency", "latency", "double",
      "Latency of the link along each axis in microseconds">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

def VerifyPlanned : Pass<"neuroshard-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the invariants of the planned level";
  let description = [{
    - The module has a plan, and no op of the sharded or partitioned level.
    - The plan covers every table exactly once, or replicates it on all
      devices.
    - The planner's verifier, which shares no code with any search, accepts it: devices and tiers, pins, constraints of
      `neuroshard.planning`, and, with `check-memory`, the memory of devices
      and hosts.

    The IR does not change.

    ```mlir
    // Refused: 'neuroshard.plan' op must cover every table, but shards of '@t'
    // cover 400 of its 800 elements; neuroshard-plan completes a plan
    neuroshard.table @t : 100 x 8 x f32
    neuroshard.plan @plan on @cluster semantics exact {
      neuroshard.shard "t0" of @t rows [0, 50) cols [0, 8) on [0]
    }
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", /*default=*/"",
      "Plan to check. Default: the only one of the module.">,
    Option<"checkMemory", "check-memory", "bool", /*default=*/"false",
      "Also check the memory of devices and hosts.">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

def VerifySharded : Pass<"neuroshard-verify-sharded", "::mlir::ModuleOp"> {
  let summary = "Check the invariants of the sharded level";
  let description = [{
    - No logical lookup, update or gradient of weights is left, and no op of
      the partitioned level is there; start, wait and update have their form.
    - `@embeddings_start` names a plan of the module, which covers all tables.
    - Sharded tables are looked up at their owners, replicated ones at the
      batch. Every lookup at the owners has its ids distributed in start and
      its rows combined in wait, exactly once each.
    - In training, every lookup of a table with an optimizer gives its gradient
      to exactly one update: at the owners, in two phases where an exact
      row-wise optimizer needs them, or at the replicas. The tables whose rows
      are reduced, whose norms are exchanged and that are applied are the same.

    The IR does not change.

    ```mlir
    // Refused: 'neuroshard.fused_lookup' op looks up the sharded table '@t' at
    // the batch; its rows are at their owners
    %p = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @t["a"]>] : !batch_ids -> ...
    ```
  }];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

def VerifyPartitioned
    : Pass<"neuroshard-verify-partitioned", "::mlir::ModuleOp"> {
  let summary = "Check the invariants of the partitioned level";
  let description = [{
    - No value is distributed, no lookup of a higher level is left, and the
      step functions take the device first.
    - Routed ids and partial rows are used with their own exchange, before they
      are released, and are released once.
    - Device programs cover every device of the topology exactly once.
    - The i-th shard of a slot lies on the program's i-th device, and has the
      slot's dim, element type, table dim and optimizer; the device binds each
      of its shards exactly once.
    - Every lookup of a slot's table in every exchange is a lookup of the slot
      exactly once, with the same kind of pooling and weights.

    The IR does not change.

    ```mlir
    // Refused: 'neuroshard.local_table' op binds shard "t0" on device 1, which
    // lies on [0]
    neuroshard.device_program @program0 for [1] {
      neuroshard.local_table 0 : 4 x f32 of 4 shards ["t0"]
    }
    ```
  }];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

#endif // NEUROSHARD_TRANSFORMS_PASSES
