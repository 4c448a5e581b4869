//===- BundleOps.td - What travels between step functions --*- tablegen -*-===//
//
// Level 1: a bundle lists the types of its values, and unbundling gives them
// back.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_BUNDLEOPS_TD
#define NEUROSHARD_DIALECT_BUNDLEOPS_TD

include "neuroshard/Dialect/NeuroShardBase.td"

class NeuroShard_BundleOp<string mnemonic, Type bundle>
    : NeuroShard_PureOp<mnemonic> {
  let arguments = (ins Variadic<AnyType>:$values);
  let results = (outs bundle:$bundle);
  let assemblyFormat = "($values^ `:` qualified(type($values)) `->`)? attr-dict qualified(type($bundle))";
  let hasVerifier = 1;
}

class NeuroShard_UnbundleOp<string mnemonic, Type bundle>
    : NeuroShard_PureOp<mnemonic> {
  let arguments = (ins bundle:$bundle);
  let results = (outs Variadic<AnyType>:$values);
  let assemblyFormat = "$bundle attr-dict `:` qualified(type($bundle)) (`->` qualified(type($values))^)?";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NeuroShard_SuspendOp : NeuroShard_BundleOp<"suspend", NeuroShard_PendingType> {
  let summary = "bundle what is in flight, at the end of the start function";
  let description = [{
    The type lists those of the values, in order.

    ```mlir
    %p = neuroshard.suspend %routed, %ids : !neuroshard.routed, !ids
      -> !neuroshard.pending<!neuroshard.routed, !ids>
    ```
  }];
}
def NeuroShard_ResumeOp : NeuroShard_UnbundleOp<"resume", NeuroShard_PendingType> {
  let summary = "unbundle what is in flight, at the beginning of the wait function";
  let description = [{
    Of `suspend` it folds to the values.

    ```mlir
    %routed, %ids = neuroshard.resume %p : !neuroshard.pending<!neuroshard.routed, !ids>
      -> !neuroshard.routed, !ids
    ```
  }];
}
def NeuroShard_SaveOp : NeuroShard_BundleOp<"save", NeuroShard_ContextType> {
  let summary = "bundle what the update needs";
  let description = [{
    The wait function returns it.

    ```mlir
    %c = neuroshard.save %b, %o : !batch_ids, !owner_ids -> !neuroshard.context<!batch_ids, !owner_ids>
    ```
  }];
}
def NeuroShard_DiscardOp : NeuroShard_Op<"discard", [NeuroShard_Effects]> {
  let summary = "release a context without an update";
  let description = [{
    At the sharded level, in a forward that no update follows.

    ```mlir
    neuroshard.discard %c : !neuroshard.context<!batch_ids, !owner_ids>
    ```
  }];
  let arguments = (ins NeuroShard_ContextType:$context);
  let assemblyFormat = "$context attr-dict `:` qualified(type($context))";
}
def NeuroShard_RestoreOp : NeuroShard_UnbundleOp<"restore", NeuroShard_ContextType> {
  let summary = "unbundle what the forward saved";
  let description = [{
    Of `save` it folds to the values.

    ```mlir
    %b, %o = neuroshard.restore %c : !neuroshard.context<!batch_ids, !owner_ids>
      -> !batch_ids, !owner_ids
    ```
  }];
}

#endif // NEUROSHARD_DIALECT_BUNDLEOPS_TD
