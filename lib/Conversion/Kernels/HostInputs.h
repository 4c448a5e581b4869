//===- HostInputs.h - A kernel's arrays on the host ------------*- C++ -*-===//
//
// Arrays are memrefs, items are the iterations of an scf.parallel, and later
// rows are prefetched.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_HOSTINPUTS_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_HOSTINPUTS_H

#include "KernelBody.h"

namespace neuroshard {

/// The items [begin, end) of a call.
struct HostItems {
  mlir::Value begin, end;
};

/// Arrays of the ABI; those that the kernel does not have are null.
struct HostLookupArrays {
  mlir::Value ids, offsets, sampleWeights, gradientOffsets;
};
struct HostUpdateArrays {
  mlir::Value rows, segments, gradientOffsets, sampleWeights;
};

class HostLookupInputs : public LookupInputs {
public:
  /// Emits, in front of the items, the last position that prefetches read.
  HostLookupInputs(mlir::ImplicitLocOpBuilder &b, const HostItems &items,
                   const HostLookupArrays &arrays);

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  Span getBag(mlir::Value item) override;
  mlir::Value getId(mlir::Value position) override;
  mlir::Value getIdAhead(mlir::Value position) override;
  mlir::Value getSampleWeight(mlir::Value position) override;
  mlir::Value getGradientOffset(mlir::Value position) override;

private:
  mlir::ImplicitLocOpBuilder &b;
  HostItems items;
  HostLookupArrays arrays;
  mlir::Value lastPosition;
};

class HostUpdateInputs : public UpdateInputs {
public:
  /// Emits, in front of the items, the last item and position that prefetches
  /// read.
  HostUpdateInputs(mlir::ImplicitLocOpBuilder &b, const HostItems &items,
                   const HostUpdateArrays &arrays);

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  mlir::Value getRow(mlir::Value item) override;
  mlir::Value getRowAhead(mlir::Value item) override;
  Span getRun(mlir::Value item) override;
  mlir::Value getGradientOffset(mlir::Value position) override;
  mlir::Value getGradientOffsetAhead(mlir::Value position) override;
  mlir::Value getFactor(mlir::Value position) override;

private:
  mlir::ImplicitLocOpBuilder &b;
  HostItems items;
  HostUpdateArrays arrays;
  mlir::Value lastItem, lastPosition;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_HOSTINPUTS_H
