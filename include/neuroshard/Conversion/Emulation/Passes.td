//===- Passes.td - GPU kernels as functions for the CPU ----*- tablegen -*-===//
//
// Runs the module that becomes PTX without a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_EMULATION_PASSES
#define NEUROSHARD_CONVERSION_EMULATION_PASSES

include "mlir/Pass/PassBase.td"

def EmulateGpu : Pass<"neuroshard-emulate-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn GPU kernels into functions that a CPU runs once per GPU thread";
  let description = [{
    Replaces the module's only `gpu.module` by its functions. A kernel becomes
    a public function, for which the native pipeline makes an entry point that
    takes its arguments as cuLaunchKernel does; ops for
    numbers of threads, shuffles, votes and barriers become calls of the
    emulator (Emulator/EmulatorABI.h), which runs each GPU thread as a fiber.
    Pointers to global and constant memory become plain ones; prefetches are
    dropped. Each load, store and atomic operation of the LLVM dialect is
    reported to the emulator before it happens, so that it finds races.
    Arguments may be numbers, pointers and memrefs of static shape, which are
    passed as bare pointers.

    Emulated kernels have one dimension of blocks and of threads and no shared
    memory. Other ops of the `gpu` and `nvvm` dialects are errors.

    ```mlir
    // Before:
    gpu.module @kernels {
      gpu.func @f(%x: !llvm.ptr<1>) kernel {
        %t = gpu.thread_id x
        ...
        %s = nvvm.shfl.sync bfly %mask, %v, %offset, %clamp : f32 -> f32
        nvvm.bar.warp.sync %mask : i32
        llvm.store %s, %x : f32, !llvm.ptr<1>
        gpu.return
    // After:
    func.func @f(%x: !llvm.ptr) {
      %i = call @nse_thread_id() : () -> i64
      %t = arith.index_cast %i : i64 to index
      ...
      %bits = arith.bitcast %v : f32 to i32
      %r = call @nse_shuffle(%mask, %bits, %offset, %clamp, %bfly) : ... -> i64
      %low = arith.trunci %r : i64 to i32
      %s = arith.bitcast %low : i32 to f32
      call @nse_warp_sync(%mask) : (i32) -> ()
      call @nse_access(%x, %bytes, %write) : (!llvm.ptr, i64, i32) -> ()
      llvm.store %s, %x : f32, !llvm.ptr
      return
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect"
  ];
}

#endif // NEUROSHARD_CONVERSION_EMULATION_PASSES
