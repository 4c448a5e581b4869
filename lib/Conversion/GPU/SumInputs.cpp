//===- SumInputs.cpp - Inputs of updates by sums of rows ------------------===//

#include "SumInputs.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

void SumInputs::forEachItem(llvm::function_ref<void(Value)> emit) {
  Value counts = slot.array(offsetof(nsg_slot, norms),
                            getFlatType(b.getF32Type()), /*invariant=*/true);
  Value none = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value hasGradients =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                            memref::LoadOp::create(b, counts, row), none);
  auto branch = scf::IfOp::create(b, hasGradients, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emit(row);
}

Span SumInputs::getRun(Value) {
  Value one = arith::ConstantIndexOp::create(b, 1);
  return {row, arith::AddIOp::create(b, row, one)};
}

} // namespace neuroshard
