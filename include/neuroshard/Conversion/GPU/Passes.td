//===- Passes.td - From GPU modules to NVVM ----------------*- tablegen -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_PASSES
#define NEUROSHARD_CONVERSION_GPU_PASSES

include "mlir/Pass/PassBase.td"

def ExactMath : Pass<"neuroshard-exact-math"> {
  let summary = "Round square roots as IEEE 754 asks for";
  let description = [{
    MLIR's lowering of `math.sqrt` for NVIDIA calls libdevice, whose square root
    is approximate unless a module flag says otherwise. This pass takes the
    instruction that rounds correctly, element by element, so that kernels give
    the bits that the host's give.

    ```mlir
    // Before:
    %r = math.sqrt %x : f32
    // After:
    %r = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"
  ];
}

#endif // NEUROSHARD_CONVERSION_GPU_PASSES
