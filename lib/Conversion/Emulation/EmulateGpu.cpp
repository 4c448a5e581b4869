//===- EmulateGpu.cpp - GPU kernels as functions for the CPU --------------===//
//
// The pass neuroshard-emulate-gpu; its steps are in the files Emulated*.cpp.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Emulation/Passes.h"

#include "Emulated.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_EMULATEGPU
#include "neuroshard/Conversion/Emulation/Passes.h.inc"

namespace {
struct EmulateGpu : impl::EmulateGpuBase<EmulateGpu> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(dissolveGpuModule(module)) ||
        failed(dropAddressSpaces(module)) ||
        failed(convertGpuFunctions(module)) || failed(convertGpuOps(module)))
      return signalPassFailure();
    reportAccesses(module);
  }
};
} // namespace

} // namespace neuroshard
