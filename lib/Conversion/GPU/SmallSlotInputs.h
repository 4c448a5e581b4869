//===- SmallSlotInputs.h - Inputs of updates without a sort -----*- C++ -*-===//
//
// The inputs of the bodies of small slots' kernels, over the structs of
// RuntimeCuda/GpuKernelABI.h, for one item.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_SMALLSLOTINPUTS_H
#define NEUROSHARD_LIB_CONVERSION_GPU_SMALLSLOTINPUTS_H

#include "GpuInputs.h"

namespace neuroshard {

/// Sums of gradients over some pieces. Item c * rows + r is sum c of row r; the
/// span of a piece has the positions of the row in it.
class PieceInputs : public SortedInputs {
public:
  PieceInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
              const DeviceStruct &sorted, mlir::Value item);

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override {
    emit(sum);
  }
  mlir::Value getRow(mlir::Value) override { return row; }
  Span getRun(mlir::Value) override { return {}; }
  mlir::Value countPieces(mlir::Value item) override;
  Span getPiece(mlir::Value item, mlir::Value number) override;

private:
  mlir::Value sum, row, firstPiece, numPieces;
};

/// The update of a row, the item, by the sums of its gradients: sum i takes the
/// place of the gradient at position i. Rows without gradients are skipped.
class SumInputs : public UpdateInputs {
public:
  SumInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
            mlir::Value row)
      : b(b), slot(slot), row(row) {}

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  mlir::Value getRow(mlir::Value item) override { return item; }
  Span getRun(mlir::Value item) override;
  /// Number of a row of nsg_slot.reduced.
  mlir::Value getGradientOffset(mlir::Value position) override;
  mlir::Value getFactor(mlir::Value) override { return {}; }

private:
  mlir::Value countSums();
  mlir::Value hasGradients();

  mlir::ImplicitLocOpBuilder &b;
  DeviceStruct slot;
  mlir::Value row;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_SMALLSLOTINPUTS_H
