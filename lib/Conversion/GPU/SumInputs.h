//===- SumInputs.h - Inputs of updates by sums of rows ----------*- C++ -*-===//
//
// The inputs of the bodies of nsg_update_by_sums, over the structs of
// RuntimeCuda/GpuKernelABI.h, for one item.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_SUMINPUTS_H
#define NEUROSHARD_LIB_CONVERSION_GPU_SUMINPUTS_H

#include "DeviceStruct.h"
#include "KernelBody.h"

namespace neuroshard {

/// The update of a row, the item, by the sum of its gradients, which takes the
/// place of the only one. Rows without gradients are skipped.
class SumInputs : public UpdateInputs {
public:
  SumInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
            mlir::Value row)
      : b(b), slot(slot), row(row) {}

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  mlir::Value getRow(mlir::Value item) override { return item; }
  Span getRun(mlir::Value item) override;
  /// Number of a row of nsg_slot.reduced.
  mlir::Value getGradientOffset(mlir::Value position) override {
    return position;
  }
  mlir::Value getFactor(mlir::Value) override { return {}; }

private:
  mlir::ImplicitLocOpBuilder &b;
  DeviceStruct slot;
  mlir::Value row;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_SUMINPUTS_H
