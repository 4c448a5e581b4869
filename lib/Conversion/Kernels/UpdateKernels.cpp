//===- UpdateKernels.cpp - Optimizer steps on unique rows -----------------===//
//
// A row of more than one block has the gradient summed again in the second
// pass of a row-wise optimizer: the same bits, and no scratch memory.
//
//===----------------------------------------------------------------------===//

#include "CatchUpKernels.h"
#include "TrustKernels.h"
#include "UpdateParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace neuroshard {

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
      before.weights = keepWeights(rows, before.weights, body.kept);
      RowState after =
          applyElementwise(rows, optimizer, before, gradient, body.stepSize);
      writeStates(body, after.states, row, block);
      writeWeights(body, after.weights, row, block, gradient);
    });
  });
}

/// One step of a block of a row by the factors that its states give. Reads the
/// element-wise states only now: during the sum of the norm they would take
/// registers.
static void updateByFactor(const UpdateBody &body, const ColumnBlock &block,
                           Value row, RowState before, const Row &gradient,
                           const RowFactors &factors) {
  for (Value state : elementStates(body))
    before.states.push_back(body.rows.read({state, row}, block));
  before.weights = keepWeights(body.rows, before.weights, factors.ofWeights);
  RowState after = applyRowwise(body.rows, body.spec.optimizer, before,
                                gradient, factors.ofGradient);
  writeStates(body, after.states, row, block);
  writeWeights(body, after.weights, row, block, gradient);
}

/// The gradient that the weights take: as the norm has it, with L2 weight
/// decay, but with counters, which have the decay in the factor of the weights.
static const Row &takenGradient(const UpdateBody &body, const Row &sum,
                                const Row &decayed) {
  return propertiesOf(body.spec.optimizer.kind).hasCounters ? sum : decayed;
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
    SmallVector<Value> states;
    if (readsAhead)
      states = readRowStates(body, row);
    RowState before;
    Row sum, gradient;
    auto loadBlock = [&](const ColumnBlock &block) {
      RowBefore reads(body, row, block, {});
      sum = readGradient(body, block, run);
      before = reads.get();
      gradient = addWeightDecay(rows, optimizer, sum, before.weights);
    };
    Value norm = rows.sumColumns([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      loadBlock(block);
      return rows.multiply(gradient, gradient);
    });
    if (!readsAhead)
      states = readRowStates(body, row);
    RowFactors factors = stepRowStates(body, row, states, norm);
    rows.forEachBlock([&](const ColumnBlock &block) {
      if (!rows.isOneBlock())
        loadBlock(block);
      updateByFactor(body, block, row, before,
                     takenGradient(body, sum, gradient), factors);
    });
  });
}

static bool hasTrustRatio(const UpdateBody &body) {
  return propertiesOf(body.spec.optimizer.kind).hasTrustRatio;
}

static void emitUpdate(const UpdateBody &body) {
  if (body.spec.optimizer.catchUp)
    return emitCatchUpUpdate(body);
  if (hasTrustRatio(body))
    return emitTrustUpdate(body);
  if (isRowWise(body.spec.optimizer.kind))
    return emitRowwiseUpdate(body);
  emitElementwiseUpdate(body);
}

/// The first phase under L2 weight decay: the gradient of the norm has it.
static void emitDecayedReduce(const UpdateBody &body) {
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    Span run = body.inputs.getRun(item);
    Value norm = rows.sumColumns([&](const ColumnBlock &block) {
      rows.prefetch({body.weights, ahead}, block, /*forWrite=*/true);
      RowBefore reads(body, row, block, {});
      Row sum = readGradient(body, block, run);
      Row gradient =
          addWeightDecay(rows, body.spec.optimizer, sum, reads.get().weights);
      rows.write(takenGradient(body, sum, gradient), {body.reduced, item},
                 block);
      return rows.multiply(gradient, gradient);
    });
    rows.writeScalar(norm, body.norms, item);
  });
}

static void emitReduce(const UpdateBody &body) {
  if (hasTrustRatio(body))
    return emitTrustReduce(body);
  if (normsNeedWeights(body.spec.optimizer))
    return emitDecayedReduce(body);
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
  if (hasTrustRatio(body))
    return emitTrustApply(body);
  RowBuilder &rows = body.rows;
  body.inputs.forEachItem([&](Value item) {
    Value row = body.inputs.getRow(item);
    Value ahead = body.inputs.getRowAhead(item);
    prefetchRowState(body, ahead);
    Value norm = memref::LoadOp::create(body.b, body.norms, item);
    RowFactors factors =
        stepRowStates(body, row, readRowStates(body, row), norm);
    rows.forEachBlock([&](const ColumnBlock &block) {
      prefetchRow(body, ahead, block);
      Row gradient = rows.read({body.reduced, item}, block);
      RowState before{body.rows.read({body.weights, row}, block), {}};
      updateByFactor(body, block, row, before, gradient, factors);
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
