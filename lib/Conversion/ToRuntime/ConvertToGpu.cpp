//===- ConvertToGpu.cpp - Partitioned IR to the GPU module of a program ---===//

#include "neuroshard/Conversion/ConvertToGpu.h"

#include "ProgramSpec.h"

#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Dialect/CheckedOptions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_CONVERTTOGPU
#include "neuroshard/Conversion/Passes.h.inc"

FailureOr<GpuProgram> convertToGpu(ModuleOp partitioned, StringRef program,
                                   const GpuProgramOptions &options,
                                   ModuleOp to) {
  FailureOr<ir::DeviceProgramOp> kept = findProgram(partitioned, program);
  if (failed(kept))
    return failure();
  // For direct callers; the pass declares them as dependent dialects.
  to.getContext()
      ->loadDialect<arith::ArithDialect, func::FuncDialect, gpu::GPUDialect,
                    LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
                    NVVM::NVVMDialect, scf::SCFDialect, ub::UBDialect,
                    vector::VectorDialect>();
  ProgramSpec spec = describeProgram(*kept);
  to.getBody()->clear();
  return buildGpuModule(to, spec, options);
}

namespace {
struct ConvertToGpu : CheckedOptions<impl::ConvertToGpuBase<ConvertToGpu>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(convertToGpu(module, program, {output}, module)))
      signalPassFailure();
  }
};
} // namespace

} // namespace neuroshard
