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

namespace {
/// An id without a bag, or whose sample weight has a gradient.
struct SingleId {
  Value position, ahead, row;
};
} // namespace

static SmallVector<SingleId> readIds(const LookupBody &body,
                                     ArrayRef<Value> positions) {
  LookupInputs &inputs = body.inputs;
  SmallVector<SingleId> ids;
  for (Value position : positions) {
    Value ahead = inputs.getIdAhead(position);
    ids.push_back({position, ahead, inputs.getId(position)});
  }
  inputs.finishIds();
  return ids;
}

static void emitRowLookup(const LookupBody &body) {
  RowBuilder &rows = body.rows;
  // A row of several blocks has enough loads in flight by itself.
  int64_t inFlight = rows.isOneBlock() ? rows.getShape().inFlight : 1;
  body.inputs.forEachItems(inFlight, [&](ArrayRef<Value> positions) {
    SmallVector<SingleId> ids = readIds(body, positions);
    SmallVector<Value> places;
    for (Value position : positions)
      places.push_back(arith::MulIOp::create(body.b, position, body.outStride));
    rows.forEachBlock([&](const ColumnBlock &block) {
      SmallVector<Row> read;
      for (const SingleId &id : ids) {
        rows.prefetch({body.weights, id.ahead}, block, /*forWrite=*/false);
        read.push_back(rows.read({body.weights, id.row}, block));
      }
      for (auto [row, place] : llvm::zip_equal(read, places))
        rows.write(row, {body.out, place}, block);
    });
  });
}

static void emitWeightGradient(const LookupBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  LookupInputs &inputs = body.inputs;
  // The gradient is one of the rows in flight.
  int64_t inFlight = rows.getShape().inFlight;
  inputs.forEachItems(
      inFlight > 2 ? inFlight : 1, [&](ArrayRef<Value> positions) {
        SmallVector<SingleId> ids = readIds(body, positions);
        SmallVector<Value> offsets;
        for (Value position : positions)
          offsets.push_back(inputs.getGradientOffset(position));
        auto multiply = [&](const ColumnBlock &block) {
          SmallVector<Row> read, products;
          for (const SingleId &id : ids) {
            rows.prefetch({body.weights, id.ahead}, block, /*forWrite=*/false);
            read.push_back(rows.read({body.weights, id.row}, block));
          }
          Row gradient;
          for (size_t i = 0; i < ids.size(); ++i) {
            if (i == 0 || offsets[i] != offsets[i - 1])
              gradient = rows.read({body.gradients, offsets[i]}, block);
            products.push_back(rows.multiply(read[i], gradient));
          }
          return products;
        };
        SmallVector<Value> dots =
            rows.sumColumns(static_cast<int64_t>(ids.size()), multiply);
        for (auto [id, dot] : llvm::zip_equal(ids, dots)) {
          if (Value divisor = inputs.getGradientDivisor(id.position))
            dot = arith::DivFOp::create(b, dot, divisor);
          rows.writeScalar(dot, body.out, id.position);
        }
      });
}

void emitBody(const LookupBody &body) {
  if (body.spec.kind == KernelKind::WeightGradient)
    return emitWeightGradient(body);
  body.spec.pooled ? emitPooledLookup(body) : emitRowLookup(body);
}

} // namespace neuroshard
