//===- KernelBody.h - The bodies of the kernels ----------------*- C++ -*-===//
//
// Every kernel has one body for all targets. A target provides the function and
// an implementation of the inputs, from which the body reads ids, positions and
// factors.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_KERNELBODY_H

#include "Rows/RowBuilder.h"

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include <optional>

namespace neuroshard {

/// More elements than any array has.
inline constexpr int64_t kUnbounded = int64_t{1} << 40;

/// A half-open range of positions.
struct Span {
  mlir::Value first;
  mlir::Value limit;
};

/// A run whose first positions have been added up in chunks: the numbers of the
/// chunks, and the positions behind them. The sum of chunk i begins at element
/// i * stride of `partials`.
struct SplitRun {
  Span sums, rest;
  mlir::Value partials, stride;
};

/// Emits reads of the arrays of a kernel. Values are of type index, but sample
/// weights and factors are f32. `...Ahead` reads an element for the row to
/// prefetch; it is null if the target does not prefetch.
class KernelInputs {
public:
  virtual ~KernelInputs();

  /// Emits `emit` for every item: in a loop, or one per thread.
  virtual void forEachItem(llvm::function_ref<void(mlir::Value item)> emit) = 0;
};

/// For lookups and gradients of sample weights.
class LookupInputs : public KernelInputs {
public:
  /// As forEachItem, but a target may emit up to `atOnce` items together, so
  /// that their loads overlap.
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
  /// Offset of the gradient of the id's bag, for gradients of sample weights.
  /// Ids of one bag give the same value.
  virtual mlir::Value getGradientOffset(mlir::Value position) = 0;
  /// Divisor of the gradient of the id's sample weight (f32), or null.
  virtual mlir::Value getGradientDivisor(mlir::Value) { return {}; }
};

/// For updates, their phases, and sums of chunks.
class UpdateInputs : public KernelInputs {
public:
  virtual mlir::Value getRow(mlir::Value item) = 0;
  virtual mlir::Value getRowAhead(mlir::Value) { return {}; }
  /// The positions of the gradients of an item.
  virtual Span getRun(mlir::Value item) = 0;
  /// The run in parts, if its chunks may have been added up before.
  virtual std::optional<SplitRun> splitRun(Span) { return std::nullopt; }
  virtual mlir::Value getGradientOffset(mlir::Value position) = 0;
  /// getGradientOffset of the current item's first position, if it has been
  /// read before; else null.
  virtual mlir::Value getFirstGradientOffset() { return {}; }
  /// Where getFirstGradientOffset is not null: reads what the next item begins
  /// with; setReadAhead gets the values, merged over branches.
  virtual llvm::SmallVector<mlir::Value> emitReadsAhead() { return {}; }
  virtual void setReadAhead(mlir::ValueRange) {}
  virtual mlir::Value getGradientOffsetAhead(mlir::Value) { return {}; }
  virtual mlir::Value getFactor(mlir::Value position) = 0;
};

/// Common to all bodies.
struct KernelBody {
  mlir::ImplicitLocOpBuilder &b;
  RowBuilder &rows;
  const KernelSpec &spec;
};

/// A lookup or a gradient of sample weights. Runtime/KernelABI.h explains the
/// values; those that a kind does not use are null.
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
  llvm::SmallVector<mlir::Value, kMaxStates> states = {};
  mlir::Value gradients = {};
  mlir::Value stepSize = {};
  /// Null unless weight decay keeps the same share of the weights of each row.
  mlir::Value kept = {};
  /// Read under stochastic rounding.
  mlir::Value seed = {};
  /// Factors of moments; read with a trust ratio.
  mlir::Value first = {};
  mlir::Value second = {};
  /// The number of the step; read with counters and by rows that catch up.
  mlir::Value step = {};
  /// Read by rows that catch up.
  mlir::Value history = {};
  mlir::Value reduced = {};
  mlir::Value norms = {};
  /// Rows of the sums of chunks, each `partialStride` elements.
  mlir::Value partials = {};
  mlir::Value partialStride = {};
};

/// A term of a sum: a row times a factor, which may be null.
struct Term {
  RowAddress address;
  mlir::Value factor;
};

/// Emits the terms at neighbouring positions.
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
