//===- NeuroShardAttributes.td - Attributes ----------------*- tablegen -*-===//
//
// Attributes of tables, lookups and topologies.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_ATTRIBUTES_TD
#define NEUROSHARD_DIALECT_ATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "neuroshard/Dialect/ModelEnums.td"

class NeuroShard_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<NeuroShard_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def NeuroShard_OptimizerAttr : NeuroShard_Attr<"Optimizer", "optimizer"> {
  let summary = "sparse optimizer of a table";
  let description = [{
    Learning rate and step are run-time arguments of the update. Only rows of
    the batch are touched (Adam is lazy, as torch.optim.SparseAdam).
    `initial_accumulator` is that of Adagrad and FTRL; `beta1` is also the factor
    of momentum's buffer; `eps`, `l1_penalty` and `l2_penalty` are FTRL's beta,
    lambda1 and lambda2; `eta` is the factor of LARS's trust ratio;
    `counter_halflife`, `adjustment_iter` and `adjustment_ub` are those of
    row-wise Adagrad with counter. `weight_decay` is added to the gradient as
    `l2`, or multiplies the weights before the step as `decoupled` (LAMB adds it
    to the direction of the step); the mode is that of the optimizer's kind
    unless `weight_decay_mode` says another. Elements of a row's summed gradient
    are clamped to +-`max_gradient` first, unless that is 0.
    `stochastic_rounding`, of tables of f16 and bf16, rounds weights up or down
    at random. With `catch_up`, of sgd, momentum, adagrad, adam and adamw, rows
    that a step does not touch take it, too, by a gradient of 0, as a dense
    optimizer has it. Each kind takes its own settings alone. Numbers are f64.
    Printed only where they differ from the default.

    ```mlir
    #neuroshard.optimizer<sgd>
    #neuroshard.optimizer<rowwise_adagrad, eps = 1.000000e-10>
    #neuroshard.optimizer<adam, beta1 = 8.000000e-01>
    #neuroshard.optimizer<momentum, beta1 = 9.500000e-01>
    #neuroshard.optimizer<adagrad, weight_decay = 1.000000e-02,
                          weight_decay_mode = decoupled>
    #neuroshard.optimizer<sgd, stochastic_rounding>
    #neuroshard.optimizer<adamw, weight_decay = 1.000000e-02, catch_up>
    #neuroshard.optimizer<ftrl, l1_penalty = 1.000000e-03>
    #neuroshard.optimizer<lars_sgd, eta = 2.000000e-03>
    #neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 1.000000e-02,
                          weight_decay_mode = adagradw>
    ```
  }];
  let parameters = (ins
    EnumParameter<NeuroShard_OptimizerKind>:$kind,
    "::mlir::FloatAttr":$eps,
    "::mlir::FloatAttr":$beta1,
    "::mlir::FloatAttr":$beta2,
    "::mlir::FloatAttr":$initialAccumulator,
    "::mlir::FloatAttr":$weightDecay,
    EnumParameter<NeuroShard_WeightDecayMode>:$weightDecayMode,
    "::mlir::FloatAttr":$l1Penalty,
    "::mlir::FloatAttr":$l2Penalty,
    "::mlir::FloatAttr":$eta,
    "::mlir::FloatAttr":$counterHalflife,
    "::mlir::FloatAttr":$adjustmentIter,
    "::mlir::FloatAttr":$adjustmentUb,
    "::mlir::FloatAttr":$maxGradient,
    "bool":$stochasticRounding,
    "bool":$catchUp
  );
  let builders = [
    AttrBuilder<(ins "const ::neuroshard::Optimizer &":$optimizer)>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// As a value of Model.
    ::neuroshard::Optimizer getOptimizer() const;
  }];
}

def NeuroShard_AccessAttr : NeuroShard_Attr<"Access", "access"> {
  let summary = "measured access statistics of a table";
  let description = [{
    `reuse`: 17 shares; of the distinct ids seen in a batch of `batch` samples,
    the share seen once, 2, 3-4, 5-8, ... times, doubling to more than 32768.
    `row_mass` (optional) is a curve of points, flattened: the hottest share of
    the rows, and the share of the lookups they get; ascending. `rows_by_use`
    (optional): the rows are in the order of their use, so that these are the
    first ones.

    ```mlir
    #neuroshard.access<batch = 65536, reuse = [0.5, 0.5, 0.0, ...],
                       row_mass = [0.01, 0.4, 0.1, 0.8]>
    ```
  }];
  let parameters = (ins
    "int64_t":$batch,
    "::mlir::DenseF64ArrayAttr":$reuse,
    "::mlir::DenseF64ArrayAttr":$rowMass,
    "bool":$rowsByUse
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def NeuroShard_FeatureAttr : NeuroShard_Attr<"Feature", "feature"> {
  let summary = "statistics of the ids one lookup reads";
  let description = [{
    `mean`: mean ids per present sample; `p99`: ids per sample, absent samples included, that
    99 % of batches do not exceed (memory is sized for it; default mean x
    presence); `presence`: share of samples that have the feature
    (default 1); `batch`: its own global batch, if not the module's;
    `weight_gradient`: the sample weights need gradients.

    ```mlir
    #neuroshard.feature<mean = 3.0, p99 = 10.0, presence = 0.9>
    ```
  }];
  let parameters = (ins
    "::mlir::FloatAttr":$mean,
    "::mlir::FloatAttr":$p99,
    "::mlir::FloatAttr":$presence,
    "std::optional<int64_t>":$batch,
    "bool":$weightGradient
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def NeuroShard_LookupAttr : NeuroShard_Attr<"Lookup", "lookup"> {
  let summary = "one lookup: feature, table and pooling";
  let description = [{
    For ops that do many lookups at once.

    ```mlir
    #neuroshard.lookup<sum @user["user_id"]>
    #neuroshard.lookup<mean @item["item_id"] padding_idx = 0>
    #neuroshard.lookup<sum @item["item_id"] weighted>
    ```
  }];
  let parameters = (ins
    EnumParameter<NeuroShard_Pooling>:$pooling,
    "::mlir::FlatSymbolRefAttr":$table,
    "::mlir::StringAttr":$feature,
    "bool":$weighted,
    "std::optional<int64_t>":$paddingIdx
  );
  let hasCustomAssemblyFormat = 1;
}

def NeuroShard_LookupArrayAttr
    : TypedArrayAttrBase<NeuroShard_LookupAttr, "array of lookups">;

def NeuroShard_DevicesAttr : NeuroShard_Attr<"Devices", "devices"> {
  let summary = "consecutive devices of one class";
  let description = [{
    Device classes are those of the planner's table. `memory` overrides the
    class's usable bytes per device. `host` is the index of the host that the
    devices belong to, default 0. `dense_reserve`, `fragmentation_reserve` and
    `communicator_reserve` override the bytes per device that the class holds
    back, as they were measured.

    ```mlir
    #neuroshard.devices<8 x "H200">
    #neuroshard.devices<8 x "A100-40GB", host = 1, memory = 40000000000,
                        communicator_reserve = 3300000000>
    ```
  }];
  let parameters = (ins
    "int64_t":$count,
    "::mlir::StringAttr":$deviceClass,
    "int64_t":$host,
    "std::optional<int64_t>":$memoryBytes,
    "std::optional<int64_t>":$denseReserve,
    "std::optional<int64_t>":$fragmentationReserve,
    "std::optional<int64_t>":$communicatorReserve
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def NeuroShard_LevelAttr : NeuroShard_Attr<"Level", "level"> {
  let summary = "one level of a cluster's network";
  let description = [{
    `groups`: sizes of consecutive groups of devices; they may be unequal and
    sum to the number of devices. Two devices that share a group of this level,
    but none of the next inner one, talk over its links: bandwidth in GB/s per
    device and direction (reached, not nominal), latency in microseconds.
    `group_bandwidth`: what the devices of one group of the next inner level
    reach together, where they share a link, such as the card of a host.

    ```mlir
    #neuroshard.level<"nvlink", groups = [8, 8], bandwidth = 450.0, latency = 5.0>
    #neuroshard.level<"network", groups = [16], bandwidth = 12.5, latency = 30.0,
                      group_bandwidth = 12.5>
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$name,
    "::mlir::DenseI64ArrayAttr":$groups,
    "::mlir::FloatAttr":$bandwidthGBps,
    "::mlir::FloatAttr":$latencyUs,
    /// 0: devices share no link.
    "::mlir::FloatAttr":$groupBandwidthGBps
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def NeuroShard_DiskAttr : NeuroShard_Attr<"Disk", "disk"> {
  let summary = "the disks of a host together";
  let description = [{
    `bytes` that tables may take, `reads` of 4 KiB at random per second, and
    `bandwidth` in GB/s. What is left out is not known: bytes are then without
    limit, and rates those of the class of the host's first device.

    ```mlir
    #neuroshard.disk<bytes = 15000000000000, reads = 2200000.0, bandwidth = 13.8>
    ```
  }];
  let parameters = (ins
    /// 0: not known.
    "int64_t":$bytes,
    "::mlir::FloatAttr":$readsPerSecond,
    "::mlir::FloatAttr":$bandwidthGBps
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // NEUROSHARD_DIALECT_ATTRIBUTES_TD
