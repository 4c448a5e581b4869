//===- KernelBody.h - The bodies of the kernels ----------------*- C++ -*-===//
//
// Every kernel has one body for all targets. A target makes the function and
// its KernelInputs, which say how the body reaches what lies around its rows.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H

#include "RowBuilder.h"

#include <optional>

namespace neuroshard {

/// A half-open range of positions.
struct Span {
  mlir::Value first;
  mlir::Value limit;
};

/// A run: the positions in front of those that have been added up, those behind
/// them, and the sums, of which number i is at i * stride in `partials`.
struct SplitRun {
  Span head, tail, sums;
  mlir::Value partials, stride;
};

/// Emits reads of the arrays that a kernel walks through. All values are of
/// type index, but for factors (f32). `ahead` gives what an array holds for the
/// row to prefetch, or null where a target does not prefetch.
class KernelInputs {
public:
  virtual ~KernelInputs();

  /// Emits a loop, or whatever spreads the items over threads.
  virtual void forEachItem(llvm::function_ref<void(mlir::Value item)> emit) = 0;

  /// Lookups: the positions of a bag's ids; the row and the sample weight of
  /// the id at a position.
  virtual Span getBag(mlir::Value item) = 0;
  virtual mlir::Value getId(mlir::Value position) = 0;
  virtual mlir::Value getIdAhead(mlir::Value) { return {}; }
  virtual mlir::Value getSampleWeight(mlir::Value position) = 0;
  /// Emits the checks of all ids read since the last call, if there are any.
  virtual void finishIds() {}

  /// Updates: the row of an item and the positions of its gradients; offset
  /// and factor of the gradient at a position. Weight gradients also read
  /// offsets.
  virtual mlir::Value getRow(mlir::Value item) = 0;
  virtual mlir::Value getRowAhead(mlir::Value) { return {}; }
  virtual Span getRun(mlir::Value item) = 0;
  /// The parts of a run, if parts of long ones have been added up before.
  virtual std::optional<SplitRun> splitRun(Span) { return std::nullopt; }
  virtual mlir::Value getGradientOffset(mlir::Value position) = 0;
  virtual mlir::Value getGradientOffsetAhead(mlir::Value) { return {}; }
  virtual mlir::Value getFactor(mlir::Value position) = 0;
};

/// What a body is made from. Values that a kind of kernel has no use for are
/// null; see Runtime/KernelABI.h for what the others are.
struct KernelBody {
  mlir::ImplicitLocOpBuilder &b;
  RowBuilder &rows;
  const KernelSpec &spec;
  KernelInputs &inputs;
  /// A pooled lookup divides its sums by the number of ids.
  bool isMean = false;

  mlir::Value weights = {};
  llvm::SmallVector<mlir::Value, 2> states = {};
  mlir::Value out = {};
  mlir::Value outStride = {};
  mlir::Value gradients = {};
  mlir::Value stepSize = {};
  mlir::Value reduced = {};
  mlir::Value norms = {};
  /// Rows of the sums of chunks, each `outStride` elements.
  mlir::Value partials = {};
};

/// One row of a sum, and its factor, or null.
struct Term {
  RowAddress address;
  mlir::Value factor;
};

/// Emits the sum of `first` and the terms at the positions of `span`, in their
/// order, for one block of columns. `inFlight` rows are read before any of them
/// is added.
Row emitSum(const KernelBody &body, const ColumnBlock &block, Span span,
            Row first, int64_t inFlight,
            llvm::function_ref<Term(mlir::Value position)> emitTerm);

/// Loads element `position` of a memref of integers that are not negative, as
/// index.
mlir::Value loadIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                      mlir::Value position);

/// Emits the body of spec.kind.
void emitBody(const KernelBody &body);

void emitPooledLookup(const KernelBody &body);
void emitRowLookup(const KernelBody &body);
void emitWeightGradient(const KernelBody &body);
void emitUpdate(const KernelBody &body);
void emitReduce(const KernelBody &body);
void emitApply(const KernelBody &body);
void emitPartial(const KernelBody &body);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H
