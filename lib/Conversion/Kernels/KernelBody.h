//===- KernelBody.h - The bodies of the kernels ----------------*- C++ -*-===//
//
// Every kernel has one body for all targets. A target makes the function and
// its inputs, which say how the body reaches what lies around its rows.
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
/// type index, but for sample weights and factors (f32). `...Ahead` gives what
/// an array holds for the row to prefetch, or null where a target does not
/// prefetch.
class KernelInputs {
public:
  virtual ~KernelInputs();

  /// Emits a loop, or whatever spreads the items over threads.
  virtual void forEachItem(llvm::function_ref<void(mlir::Value item)> emit) = 0;
};

/// Of lookups and gradients of sample weights.
class LookupInputs : public KernelInputs {
public:
  /// As forEachItem, but where a target gains by it up to `atOnce` items at a
  /// time: what they read can then be under way together.
  virtual void forEachItems(
      int64_t atOnce,
      llvm::function_ref<void(llvm::ArrayRef<mlir::Value> items)> emit);
  /// The positions of a bag's ids.
  virtual Span getBag(mlir::Value item) = 0;
  /// The row of the id at a position.
  virtual mlir::Value getId(mlir::Value position) = 0;
  virtual mlir::Value getIdAhead(mlir::Value) { return {}; }
  /// Emits the checks of all ids read since the last call, if there are any.
  virtual void finishIds() {}
  virtual mlir::Value getSampleWeight(mlir::Value position) = 0;
  /// Where the gradient of the id's bag lies; gradients of sample weights only.
  /// Equal values are equal offsets.
  virtual mlir::Value getGradientOffset(mlir::Value position) = 0;
  /// What the gradient of the id's sample weight is divided by (f32), or null.
  virtual mlir::Value getGradientDivisor(mlir::Value) { return {}; }
};

/// Of updates, their phases, and sums of chunks.
class UpdateInputs : public KernelInputs {
public:
  virtual mlir::Value getRow(mlir::Value item) = 0;
  virtual mlir::Value getRowAhead(mlir::Value) { return {}; }
  /// The positions of the gradients of an item.
  virtual Span getRun(mlir::Value item) = 0;
  /// The parts of a run, if parts of long ones have been added up before.
  virtual std::optional<SplitRun> splitRun(Span) { return std::nullopt; }
  /// SmallSums has pieces for each item, spans of positions, instead of a run.
  virtual mlir::Value countPieces(mlir::Value) { return {}; }
  virtual Span getPiece(mlir::Value, mlir::Value) { return {}; }
  virtual mlir::Value getGradientOffset(mlir::Value position) = 0;
  virtual mlir::Value getGradientOffsetAhead(mlir::Value) { return {}; }
  virtual mlir::Value getFactor(mlir::Value position) = 0;
};

/// What every body is made from.
struct KernelBody {
  mlir::ImplicitLocOpBuilder &b;
  RowBuilder &rows;
  const KernelSpec &spec;
};

/// A lookup or a gradient of sample weights. See Runtime/KernelABI.h for what
/// the values are; those that a kind has no use for are null.
struct LookupBody : KernelBody {
  LookupInputs &inputs;
  /// A pooled lookup divides its sums by the number of ids.
  bool isMean = false;
  mlir::Value weights = {};
  mlir::Value out = {};
  mlir::Value outStride = {};
  mlir::Value gradients = {};
};

/// An update, a phase of one, or the sum of a chunk; values as in LookupBody.
struct UpdateBody : KernelBody {
  UpdateInputs &inputs;
  mlir::Value weights = {};
  llvm::SmallVector<mlir::Value, 2> states = {};
  mlir::Value gradients = {};
  mlir::Value stepSize = {};
  mlir::Value reduced = {};
  mlir::Value norms = {};
  /// Rows of the sums of chunks, each `partialStride` elements.
  mlir::Value partials = {};
  mlir::Value partialStride = {};
};

/// One row of a sum, and its factor, or null.
struct Term {
  RowAddress address;
  mlir::Value factor;
};

/// Emits the terms at some neighbouring positions of a sum.
using EmitTerms = llvm::function_ref<llvm::SmallVector<Term>(
    llvm::ArrayRef<mlir::Value> positions)>;

/// Emits the sum of `first` and the terms at the positions of `span`, in their
/// order, for one block of columns. `inFlight` rows are read before any of them
/// is added.
Row emitSum(const KernelBody &body, const ColumnBlock &block, Span span,
            Row first, int64_t inFlight, EmitTerms emitTerms);

/// Loads element `position` of a memref of integers that are not negative, as
/// index.
mlir::Value loadIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                      mlir::Value position);

/// Emits the body of spec.kind, which is a lookup or a weight gradient.
void emitBody(const LookupBody &body);

/// Emits the body of spec.kind, which is any other.
void emitBody(const UpdateBody &body);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H
