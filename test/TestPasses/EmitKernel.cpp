//===- EmitKernel.cpp - Pass that adds one kernel to a module -------------===//
//
// Turns the pass's options into a KernelSpec.
//
//===----------------------------------------------------------------------===//

#include "Passes.h"

#include "neuroshard/Conversion/Kernels/HostKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace neuroshard {

#define GEN_PASS_DEF_EMITKERNEL
#include "Passes.h.inc"

namespace {
struct EmitKernel : impl::EmitKernelBase<EmitKernel> {
  using EmitKernelBase::EmitKernelBase;

  void runOnOperation() override {
    KernelSpec spec;
    spec.kind = kind;
    spec.dim = dim;
    spec.element = element;
    spec.id = id;
    spec.pooled = pooled;
    spec.weighted = weighted;
    spec.optimizer = {.kind = optimizer,
                      .eps = eps,
                      .beta1 = beta1,
                      .beta2 = beta2,
                      .weightDecay = weightDecay,
                      .weightDecayMode = weightDecayMode,
                      .l1Penalty = l1Penalty,
                      .l2Penalty = l2Penalty,
                      .eta = eta,
                      .counterHalflife = counterHalflife,
                      .adjustmentIter = adjustmentIter,
                      .adjustmentUb = adjustmentUb,
                      .maxGradient = maxGradient,
                      .stochasticRounding = stochasticRounding,
                      .catchUp = catchUp};
    spec.tableDim = tableDim;
    if (failed(getOrCreateKernel(getOperation(), spec)))
      signalPassFailure();
  }
};
} // namespace

} // namespace neuroshard
