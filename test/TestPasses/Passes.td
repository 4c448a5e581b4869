//===- Passes.td - Passes that only tests run --------------*- tablegen -*-===//
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_TESTPASSES_PASSES
#define NEUROSHARD_TEST_TESTPASSES_PASSES

include "mlir/Pass/PassBase.td"

def EmitKernel : Pass<"neuroshard-emit-kernel", "::mlir::ModuleOp"> {
  let summary = "Add one embedding kernel to a module";
  let description = [{
    Adds the kernel that the options describe to the module, as a private
    function under its canonical name, unless the module has it already. The
    compiler emits all kernels of a device program with its table.

    With `kind=lookup dim=16 element=f32 id=i64` the module then holds

    ```mlir
    func.func private @nsk_lookup_sum_f32_d16_i64(
        %weights: memref<1099511627776x16xf32>, %ids: memref<1099511627776xi64>,
        %offsets: memref<1099511627776xi64>, %sample_weights: memref<1099511627776xf32>,
        %out: memref<1099511627776xf32>, %out_stride: i64, %begin: i64, %end: i64)
    ```

    whose body is one `scf.parallel` over the bags from `begin` to `end`.
  }];
  let options = [
    Option<"kind", "kind", "::neuroshard::KernelKind",
           "::neuroshard::KernelKind::Lookup", "What the kernel computes.",
           [{::llvm::cl::values(
             clEnumValN(::neuroshard::KernelKind::Lookup, "lookup", "rows of ids, summed per bag or one by one"),
             clEnumValN(::neuroshard::KernelKind::WeightGradient, "weight-gradient", "gradient of per-sample weights"),
             clEnumValN(::neuroshard::KernelKind::Update, "update", "optimizer step"),
             clEnumValN(::neuroshard::KernelKind::Reduce, "reduce", "first phase of a row-wise optimizer"),
             clEnumValN(::neuroshard::KernelKind::Apply, "apply", "second phase of a row-wise optimizer"))}]>,
    Option<"dim", "dim", "int64_t", "16", "Columns of the shard.">,
    Option<"element", "element", "::neuroshard::ElementType",
           "::neuroshard::ElementType::F32", "Element type of the weights.",
           [{::llvm::cl::values(
             clEnumValN(::neuroshard::ElementType::F32, "f32", "32 bits"),
             clEnumValN(::neuroshard::ElementType::F16, "f16", "IEEE 16 bits"),
             clEnumValN(::neuroshard::ElementType::BF16, "bf16", "the upper half of an f32"))}]>,
    Option<"id", "id", "::neuroshard::IdType", "::neuroshard::IdType::I64",
           "Type of the ids.",
           [{::llvm::cl::values(
             clEnumValN(::neuroshard::IdType::I32, "i32", "32 bits"),
             clEnumValN(::neuroshard::IdType::I64, "i64", "64 bits"))}]>,
    Option<"pooled", "pooled", "bool", "true", "Sum per bag, or one row per id.">,
    Option<"weighted", "weighted", "bool", "false", "Multiply by sample weights.">,
    Option<"optimizer", "optimizer", "::neuroshard::OptimizerKind",
           "::neuroshard::OptimizerKind::SGD", "The optimizer of update and apply.",
           [{::llvm::cl::values(
             clEnumValN(::neuroshard::OptimizerKind::SGD, "sgd", "SGD"),
             clEnumValN(::neuroshard::OptimizerKind::Adagrad, "adagrad", "Adagrad"),
             clEnumValN(::neuroshard::OptimizerKind::RowWiseAdagrad, "rowwise_adagrad", "rowwise Adagrad"),
             clEnumValN(::neuroshard::OptimizerKind::Adam, "adam", "lazy Adam"),
             clEnumValN(::neuroshard::OptimizerKind::Momentum, "momentum", "SGD with momentum"),
             clEnumValN(::neuroshard::OptimizerKind::AdamW, "adamw", "lazy AdamW"),
             clEnumValN(::neuroshard::OptimizerKind::PartialRowWiseAdam, "partial_rowwise_adam",
                        "Adam with a second moment per row"),
             clEnumValN(::neuroshard::OptimizerKind::RowWiseRMSprop, "rowwise_rmsprop",
                        "RMSprop with the mean square of a row"),
             clEnumValN(::neuroshard::OptimizerKind::FTRL, "ftrl", "FTRL-Proximal"),
             clEnumValN(::neuroshard::OptimizerKind::LARS, "lars_sgd", "LARS"),
             clEnumValN(::neuroshard::OptimizerKind::LAMB, "lamb", "LAMB"),
             clEnumValN(::neuroshard::OptimizerKind::PartialRowWiseLAMB,
                        "partial_rowwise_lamb", "LAMB with a second moment per row"),
             clEnumValN(::neuroshard::OptimizerKind::RowWiseAdagradWithCounter,
                        "rowwise_adagrad_with_counter", "row-wise Adagrad whose rows are counted"))}]>,
    Option<"eps", "eps", "double", "1e-8", "Added to the root in the denominator.">,
    Option<"beta1", "beta1", "double", "0.9", "Adam's decay of the first moment.">,
    Option<"beta2", "beta2", "double", "0.999", "Adam's decay of the second moment.">,
    Option<"weightDecay", "weight-decay", "double", "0.0", "Weight decay.">,
    Option<"weightDecayMode", "weight-decay-mode", "::neuroshard::WeightDecayMode",
           "::neuroshard::WeightDecayMode::Default", "Where weight decay goes.",
           [{::llvm::cl::values(
             clEnumValN(::neuroshard::WeightDecayMode::Default, "default", "as the optimizer has it"),
             clEnumValN(::neuroshard::WeightDecayMode::L2, "l2", "into the gradient"),
             clEnumValN(::neuroshard::WeightDecayMode::Decoupled, "decoupled", "into the weights"),
             clEnumValN(::neuroshard::WeightDecayMode::AdagradW, "adagradw",
                        "into the weights, of steps without the row, too"))}]>,
    Option<"eta", "eta", "double", "0.001", "Factor of LARS's trust ratio.">,
    Option<"counterHalflife", "counter-halflife", "double", "-1.0", "Steps in which counts halve.">,
    Option<"adjustmentIter", "adjustment-iter", "double", "-1.0", "Step after which counters matter.">,
    Option<"adjustmentUb", "adjustment-ub", "double", "1.0", "Bound of counted learning rates.">,
    Option<"l1Penalty", "l1-penalty", "double", "0.0", "FTRL's lambda1.">,
    Option<"l2Penalty", "l2-penalty", "double", "0.0", "FTRL's lambda2.">,
    Option<"maxGradient", "max-gradient", "double", "0.0", "Bound of gradients.">,
    Option<"stochasticRounding", "stochastic-rounding", "bool", "false",
           "Round weights at random.">,
    Option<"catchUp", "catch-up", "bool", "false", "Take the steps that a row has missed.">,
    Option<"tableDim", "table-dim", "int64_t", "0", "Columns of the whole table; 0: as many as the shard.">,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def Fault : Pass<"neuroshard-test-fault", "::mlir::ModuleOp"> {
  let summary = "Fail where a module has what a fault needs";
  let description = [{
    For tests of neuroshard-reduce. `cut-adam`: an error if a table with Adam is cut by columns. `copies`: an
    error if a shard has three copies or more. `mean-beside-unpooled`: a crash if a device has a shard of a
    table that is read by mean, and one of a table that is read unpooled.
  }];
  let options = [
    Option<"kind", "kind", "std::string", /*default=*/"\"cut-adam\"", "The fault.">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

def LinkModules : Pass<"neuroshard-test-link-modules", "::mlir::ModuleOp"> {
  let summary = "Put the modules of a module together";
  let description = [{
    Moves what the nested modules have into the module, as a linker would: a symbol whose name is taken is
    renamed first, with all its uses that MLIR's SymbolTable finds.
  }];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

def BuildLookup : Pass<"neuroshard-test-build-lookup", "::mlir::ModuleOp"> {
  let summary = "Build tables and a function with lookups";
  let description = [{
    With the builders of the dialect that derive types.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::neuroshard::ir::NeuroShardDialect"];
}

#endif // NEUROSHARD_TEST_TESTPASSES_PASSES
