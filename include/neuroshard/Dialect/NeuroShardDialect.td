//===- NeuroShardDialect.td - The neuroshard dialect -------*- tablegen -*-===//
//
// The dialect and its op base class.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_DIALECT_TD
#define NEUROSHARD_DIALECT_DIALECT_TD

include "mlir/IR/OpBase.td"

def NeuroShard_Dialect : Dialect {
  let name = "neuroshard";
  let summary = "Embedding tables, their placement on devices, and the steps that use them";
  let description = [{
    A program goes through these levels; passes lead from one to the next, and a
    verify pass checks the invariants of each.

    1. *Logical*: `table`, `lookup` on `jagged` ids. No device.
    2. *Planned*: a `plan` places every piece of every table. Nothing else says
       where data is.
    3. *Sharded*: lookups are outlined into start, wait and update functions
       and written on distributed values `!neuroshard.dist<T, kind>`,
       T being the undistributed logical type. The start function names the plan
       of the step: `attributes {neuroshard.plan = @plan}`.
    4. *Partitioned*: the functions are SPMD on the local batch; one
       `device_program` per distinct device declares its tables and lookups.
    5. *Native*: code on the runtime's C ABI; no op of this dialect is left.

    Effects: a lookup reads and an update writes the symbol of its table;
    collectives write the `Collective` resource, so that no pass reorders,
    merges or drops them. Everything else is pure.

    Tensors of this dialect's ops are not bufferized in place: the conversion
    to the runtime allocates each result and makes it a tensor with
    `bufferization.to_tensor restrict writable`, so that one-shot bufferization
    of the surrounding program needs no interface of this dialect.
  }];
  let cppNamespace = "::neuroshard::ir";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  // Sizes of jagged ids fold to constants and sizes of tensors.
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// Version of the bytecode this build writes. Older versions are read.
    static constexpr int64_t kBytecodeVersion = 9;

    /// Module attribute: global batch in samples (i64, > 0).
    static constexpr ::llvm::StringLiteral kBatchAttrName = "neuroshard.batch";

    /// Module attribute: a dictionary with the rest of the planning problem
    /// (constraints, reserves, memory model, target).
    static constexpr ::llvm::StringLiteral kPlanningAttrName =
        "neuroshard.planning";

    /// Attribute of the function that begins a step: the plan that distributes
    /// the step's values (flat symbol reference).
    static constexpr ::llvm::StringLiteral kPlanAttrName = "neuroshard.plan";

    void registerAttributes();
    void registerTypes();
  }];
}

def NeuroShard_DefinedAttributes : NativeOpTrait<"DefinedAttributes"> {
  let cppNamespace = "::neuroshard::ir";
}

class NeuroShard_Op<string mnemonic, list<Trait> traits = []>
    : Op<NeuroShard_Dialect, mnemonic,
         !listconcat([NeuroShard_DefinedAttributes], traits)>;

#endif // NEUROSHARD_DIALECT_DIALECT_TD
