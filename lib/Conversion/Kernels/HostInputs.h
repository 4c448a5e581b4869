//===- HostInputs.h - A kernel's arrays on the host ------------*- C++ -*-===//
//
// The arrays are memrefs, items an scf.parallel over a range, and rows that
// come later are prefetched.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_HOSTINPUTS_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_HOSTINPUTS_H

#include "KernelBody.h"

namespace neuroshard {

/// Arrays of the ABI that the kernel has; the others are null.
struct HostArrays {
  mlir::Value begin, end; ///< items.
  mlir::Value ids, offsets, sampleWeights;
  mlir::Value rows, segments, gradientOffsets;
};

class HostInputs : public KernelInputs {
public:
  /// Emits, in front of the items, the last positions that prefetches read.
  HostInputs(mlir::ImplicitLocOpBuilder &b, const HostArrays &arrays);

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  Span getBag(mlir::Value item) override;
  mlir::Value getId(mlir::Value position) override;
  mlir::Value getIdAhead(mlir::Value position) override;
  mlir::Value getSampleWeight(mlir::Value position) override;
  mlir::Value getRow(mlir::Value item) override;
  mlir::Value getRowAhead(mlir::Value item) override;
  Span getRun(mlir::Value item) override;
  mlir::Value getGradientOffset(mlir::Value position) override;
  mlir::Value getGradientOffsetAhead(mlir::Value position) override;
  mlir::Value getFactor(mlir::Value position) override;

private:
  Span getSpan(mlir::Value bounds, mlir::Value item);
  mlir::Value loadAhead(mlir::Value memref, mlir::Value position,
                        mlir::Value last);

  mlir::ImplicitLocOpBuilder &b;
  HostArrays arrays;
  /// The last item; the last position of an id or a gradient.
  mlir::Value lastItem, lastPosition;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_HOSTINPUTS_H
