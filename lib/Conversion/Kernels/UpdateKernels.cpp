//===- UpdateKernels.cpp - Optimizer steps on unique rows -----------------===//
//
// The gradient of a row is the sum over its segment, in the segment's order.
// A row of more than one block has the gradient summed again in the second
// pass of a row-wise optimizer: the same bits, and no scratch memory.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "OptimizerRules.h"
#include "RandomRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

/// Adds the gradients at the positions of `span` to `sum`.
static Row addGradients(const UpdateBody &body, const ColumnBlock &block,
                        Span span, Row sum) {
  UpdateInputs &inputs = body.inputs;
  int64_t inFlight = body.rows.getShape().inFlight;
  auto emitTerms = [&](ArrayRef<Value> positions) {
    SmallVector<Term> terms;
    for (Value position : positions) {
      body.rows.prefetch(
          {body.gradients, inputs.getGradientOffsetAhead(position)}, block,
          /*forWrite=*/false);
      Value offset = inputs.getGradientOffset(position);
      Value factor = body.spec.weighted ? inputs.getFactor(position) : Value();
      terms.push_back({{body.gradients, offset}, factor});
    }
    return terms;
  };
  return emitSum(body, block, span, sum, inFlight, emitTerms);
}

/// Few runs have sums of chunks, so registers matter more than latency.
static constexpr int64_t kSumsInFlight = 2;

static Row sumParts(const UpdateBody &body, const ColumnBlock &block,
                    const SplitRun &run) {
  auto emitSums = [&](ArrayRef<Value> numbers) {
    SmallVector<Term> terms;
    for (Value number : numbers) {
      Value offset = arith::MulIOp::create(body.b, number, run.stride);
      terms.push_back({{run.partials, offset}, {}});
    }
    return terms;
  };
  // In this order, which takes fewer registers.
  Row sum = addGradients(body, block, run.rest, body.rows.zeros(block));
  return emitSum(body, block, run.sums, sum, kSumsInFlight, emitSums);
}

static Row sumRun(const UpdateBody &body, const ColumnBlock &block, Span run) {
  if (std::optional<SplitRun> split = body.inputs.splitRun(run))
    return sumParts(body, block, *split);
  return addGradients(body, block, run, body.rows.zeros(block));
}

/// The sum of the gradients of a run. If the place of the first one is known,
/// that of a run of one is read at once.
static Row sumGradients(const UpdateBody &body, const ColumnBlock &block,
                        Span run) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  Value offset = body.inputs.getFirstGradientOffset();
  if (!offset)
    return sumRun(body, block, run);
  Value count = arith::SubIOp::create(b, run.limit, run.first);
  Value isOne =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count, rows.index(1));
  Row zeros = rows.zeros(block);
  auto finish = [&](Row sum, ArrayRef<Value> ahead) {
    llvm::append_range(sum, ahead);
    scf::YieldOp::create(b, sum);
  };
  auto emitOne = [&](OpBuilder &, Location) {
    SmallVector<Value> ahead = body.inputs.emitReadsAhead();
    Row row = rows.read({body.gradients, offset}, block);
    if (body.spec.weighted)
      row = rows.scale(body.inputs.getFactor(run.first), row);
    finish(rows.add(zeros, row), ahead);
  };
  // The sum of several needs all registers, so the reads come after it.
  auto emitSeveral = [&](OpBuilder &, Location) {
    Row sum = sumRun(body, block, run);
    finish(sum, body.inputs.emitReadsAhead());
  };
  auto branch = scf::IfOp::create(b, isOne, emitOne, emitSeveral);
  body.inputs.setReadAhead(branch.getResults().drop_front(zeros.size()));
  return Row(branch.getResults().take_front(zeros.size()));
}

/// The gradient of a run as the optimizer takes it.
static Row readGradient(const UpdateBody &body, const ColumnBlock &block,
                        Span run) {
  return clipGradient(body.rows, body.spec.optimizer,
                      sumGradients(body, block, run));
}

static void emitPartial(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Span chunk = body.inputs.getRun(item);
    Value offset = arith::MulIOp::create(body.b, item, body.partialStride);
    rows.forEachBlock([&](const ColumnBlock &block) {
      Row sum = addGradients(body, block, chunk, rows.zeros(block));
      rows.write(sum, {body.partials, offset}, block);
    });
  });
}

/// As f32.
static Value countPositions(ImplicitLocOpBuilder &b, Span span) {
  Value count = arith::SubIOp::create(b, span.limit, span.first);
  Value integer = arith::IndexCastUIOp::create(b, b.getI64Type(), count);
  return arith::UIToFPOp::create(b, b.getF32Type(), integer);
}

/// Writes the sum of a row's gradients where the row is, and how many they are.
static void emitRowSums(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Span run = body.inputs.getRun(item);
    rows.forEachBlock([&](const ColumnBlock &block) {
      rows.write(sumGradients(body, block, run), {body.reduced, row}, block);
    });
    rows.writeScalar(countPositions(body.b, run), body.norms, row);
  });
}

/// States of an optimizer: first those per element, then that per row.
static ArrayRef<Value> elementStates(const UpdateBody &body) {
  int count = optimizerStates(body.spec.optimizer.kind).perElement;
  return ArrayRef<Value>(body.states).take_front(static_cast<size_t>(count));
}

/// Prefetches the state of row `ahead`, unless that is null.
static void prefetchRowState(const UpdateBody &body, Value ahead) {
  if (ahead)
    memref::PrefetchOp::create(body.b, body.states.back(), ahead,
                               /*isWrite=*/true, /*localityHint=*/3,
                               /*isDataCache=*/true);
}

/// Prefetches weights and element-wise states of row `ahead`.
static void prefetchRow(const UpdateBody &body, Value ahead,
                        const ColumnBlock &block) {
  body.rows.prefetch({body.weights, ahead}, block, /*forWrite=*/true);
  for (Value state : elementStates(body))
    body.rows.prefetch({state, ahead}, block, /*forWrite=*/true);
}

/// Writes weights and element-wise states of a row after a step by `gradient`.
static void writeRow(const UpdateBody &body, const RowState &values, Value row,
                     const ColumnBlock &block, const Row &gradient) {
  for (auto [state, value] :
       llvm::zip_equal(elementStates(body), values.states))
    body.rows.write(value, {state, row}, block);
  Row weights = values.weights;
  if (body.spec.optimizer.stochasticRounding)
    weights =
        roundAtRandom(body.b, body.spec.element, weights, gradient, body.seed);
  body.rows.write(weights, {body.weights, row}, block);
}

static int64_t getTableDim(const KernelSpec &spec) {
  return spec.tableDim != 0 ? spec.tableDim : spec.dim;
}

namespace {
/// Weights and element-wise states of a block of a row, some of which are read
/// before the gradients are added up. They are converted to f32 only in get(),
/// so that no instruction waits for the loads before.
class RowBefore {
public:
  /// `states`: those that are read beside the weights.
  RowBefore(const UpdateBody &body, Value row, const ColumnBlock &block,
            ArrayRef<Value> states)
      : body(body), row(row), block(block) {
    int64_t room = body.rows.getShape().ahead;
    int64_t columns = block.slices.back().offset + block.slices.back().width;
    arrays.push_back(body.weights);
    llvm::append_range(arrays, states);
    for (Value array : arrays) {
      room -= columns;
      if (room >= 0)
        stored.push_back(body.rows.readStored({array, row}, block));
    }
  }

  /// Reads the others.
  RowState get() {
    for (Value array : llvm::drop_begin(arrays, stored.size()))
      stored.push_back(body.rows.readStored({array, row}, block));
    RowState state{body.rows.extend(stored.front()), {}};
    for (const Row &values : llvm::drop_begin(stored))
      state.states.push_back(body.rows.extend(values));
    return state;
  }

private:
  const UpdateBody &body;
  Value row;
  const ColumnBlock &block;
  SmallVector<Value> arrays;
  SmallVector<Row> stored;
};
} // namespace

static void emitElementwiseUpdate(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  const Optimizer &optimizer = body.spec.optimizer;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    Span run = body.inputs.getRun(item);
    rows.forEachBlock([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      RowBefore reads(body, row, block, elementStates(body));
      Row gradient = readGradient(body, block, run);
      RowState before = reads.get();
      gradient = addWeightDecay(rows, optimizer, gradient, before.weights);
      before.weights = keepWeights(rows, optimizer, before.weights, body.kept);
      RowState after =
          applyElementwise(rows, optimizer, before, gradient, body.stepSize);
      writeRow(body, after, row, block, gradient);
    });
  });
}

static Value readRowState(const UpdateBody &body, Value row) {
  return memref::LoadOp::create(body.b, body.states.back(), row);
}

/// One step of the state of `row`, which was `before`; returns the factor of
/// the row's step.
static Value updateRowState(const UpdateBody &body, Value row, Value before,
                            Value norm) {
  const Optimizer &optimizer = body.spec.optimizer;
  Value after = stepRowState(body.b, body.rows, optimizer,
                             getTableDim(body.spec), before, norm);
  body.rows.writeScalar(after, body.states.back(), row);
  return rowwiseFactor(body.b, body.rows, optimizer, after, body.stepSize);
}

/// One step of a block of a row by the factor that its state gives. Reads the
/// element-wise states only now: during the sum of the norm they would take
/// registers.
static void updateByFactor(const UpdateBody &body, const ColumnBlock &block,
                           Value row, RowState before, const Row &gradient,
                           Value factor) {
  const Optimizer &optimizer = body.spec.optimizer;
  for (Value state : elementStates(body))
    before.states.push_back(body.rows.read({state, row}, block));
  before.weights = keepWeights(body.rows, optimizer, before.weights, body.kept);
  writeRow(body, applyRowwise(body.rows, optimizer, before, gradient, factor),
           row, block, gradient);
}

static void emitRowwiseUpdate(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  const Optimizer &optimizer = body.spec.optimizer;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    prefetchRowState(body, ahead);
    Span run = body.inputs.getRun(item);
    bool readsAhead = rows.getShape().ahead > 0;
    Value state = readsAhead ? readRowState(body, row) : Value();
    RowState before;
    Row gradient;
    auto loadBlock = [&](const ColumnBlock &block) {
      RowBefore reads(body, row, block, {});
      Row sum = readGradient(body, block, run);
      before = reads.get();
      gradient = addWeightDecay(rows, optimizer, sum, before.weights);
    };
    Value norm = rows.sumColumns([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      loadBlock(block);
      return rows.multiply(gradient, gradient);
    });
    if (!readsAhead)
      state = readRowState(body, row);
    Value factor = updateRowState(body, row, state, norm);
    rows.forEachBlock([&](const ColumnBlock &block) {
      if (!rows.isOneBlock())
        loadBlock(block);
      updateByFactor(body, block, row, before, gradient, factor);
    });
  });
}

static void emitUpdate(const UpdateBody &body) {
  if (optimizerStates(body.spec.optimizer.kind).perRow > 0)
    return emitRowwiseUpdate(body);
  emitElementwiseUpdate(body);
}

static void emitReduce(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Span run = body.inputs.getRun(item);
    Value norm = rows.sumColumns([&](const ColumnBlock &block) {
      Row gradient = readGradient(body, block, run);
      rows.write(gradient, {body.reduced, item}, block);
      return rows.multiply(gradient, gradient);
    });
    rows.writeScalar(norm, body.norms, item);
  });
}

static void emitApply(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    prefetchRowState(body, ahead);
    Value norm = memref::LoadOp::create(body.b, body.norms, item);
    Value factor = updateRowState(body, row, readRowState(body, row), norm);
    rows.forEachBlock([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      Row gradient = rows.read({body.reduced, item}, block);
      RowState before{body.rows.read({body.weights, row}, block), {}};
      updateByFactor(body, block, row, before, gradient, factor);
    });
  });
}

void emitBody(const UpdateBody &body) {
  switch (body.spec.kind) {
  case KernelKind::Update:
    return emitUpdate(body);
  case KernelKind::Reduce:
    return emitReduce(body);
  case KernelKind::Apply:
    return emitApply(body);
  case KernelKind::Partial:
    return emitPartial(body);
  case KernelKind::RowSums:
    return emitRowSums(body);
  case KernelKind::Lookup:
  case KernelKind::WeightGradient:
    llvm_unreachable("not an update");
  }
}

} // namespace neuroshard
