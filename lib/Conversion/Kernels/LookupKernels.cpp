//===- LookupKernels.cpp - Forward kernels and gradients of weights -------===//
//
// A bag's rows are added in the order of its ids, element by element, into
// accumulators that stay in registers.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace neuroshard {

/// The number of ids as f32; 1 for an empty bag, whose sum is 0.
static Value getDivisor(const LookupBody &body, Span bag) {
  ImplicitLocOpBuilder &b = body.b;
  Value count = arith::SubIOp::create(b, bag.limit, bag.first);
  count = arith::MaxUIOp::create(b, count, body.rows.index(1));
  Value integer = arith::IndexCastUIOp::create(b, b.getI64Type(), count);
  return arith::UIToFPOp::create(b, b.getF32Type(), integer);
}

/// The rows and sample weights of some ids.
static SmallVector<Term> readTerms(const LookupBody &body,
                                   const ColumnBlock &block,
                                   ArrayRef<Value> positions) {
  LookupInputs &inputs = body.inputs;
  SmallVector<Term> terms;
  for (Value position : positions) {
    body.rows.prefetch({body.weights, inputs.getIdAhead(position)}, block,
                       /*forWrite=*/false);
    Value id = inputs.getId(position);
    Value weight =
        body.spec.weighted ? inputs.getSampleWeight(position) : Value();
    terms.push_back({{body.weights, id}, weight});
  }
  inputs.finishIds();
  return terms;
}

static void emitPooledLookup(const LookupBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  LookupInputs &inputs = body.inputs;
  inputs.forEachItem([&](Value item) {
    Span bag = inputs.getBag(item);
    Value outRow = arith::MulIOp::create(b, item, body.outStride);
    Value divisor = body.isMean ? getDivisor(body, bag) : Value();
    rows.forEachBlock([&](const ColumnBlock &block) {
      Row zeros = rows.zeros(block);
      int64_t inFlight = rows.getShape().inFlight;
      Row sum = emitSum(body, block, bag, zeros, inFlight,
                        [&](ArrayRef<Value> positions) {
                          return readTerms(body, block, positions);
                        });
      if (divisor)
        sum = rows.divideByScalar(sum, divisor);
      rows.write(sum, {body.out, outRow}, block);
    });
  });
}

static void emitRowLookup(const LookupBody &body) {
  RowBuilder &rows = body.rows;
  LookupInputs &inputs = body.inputs;
  inputs.forEachItem([&](Value position) {
    Value ahead = inputs.getIdAhead(position);
    Value id = inputs.getId(position);
    inputs.finishIds();
    Value outRow = arith::MulIOp::create(body.b, position, body.outStride);
    rows.forEachBlock([&](const ColumnBlock &block) {
      rows.prefetch({body.weights, ahead}, block, /*forWrite=*/false);
      rows.write(rows.read({body.weights, id}, block), {body.out, outRow},
                 block);
    });
  });
}

static void emitWeightGradient(const LookupBody &body) {
  RowBuilder &rows = body.rows;
  LookupInputs &inputs = body.inputs;
  inputs.forEachItem([&](Value position) {
    Value ahead = inputs.getIdAhead(position);
    Value id = inputs.getId(position);
    inputs.finishIds();
    Value offset = inputs.getGradientOffset(position);
    Value dot = rows.sumColumns([&](const ColumnBlock &block) {
      rows.prefetch({body.weights, ahead}, block, /*forWrite=*/false);
      Row row = rows.read({body.weights, id}, block);
      return rows.multiply(row, rows.read({body.gradients, offset}, block));
    });
    rows.writeScalar(dot, body.out, position);
  });
}

void emitBody(const LookupBody &body) {
  if (body.spec.kind == KernelKind::WeightGradient)
    return emitWeightGradient(body);
  body.spec.pooled ? emitPooledLookup(body) : emitRowLookup(body);
}

} // namespace neuroshard
