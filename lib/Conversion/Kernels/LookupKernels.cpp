//===- LookupKernels.cpp - Forward kernels and gradients of weights -------===//
//
// A bag's rows are added in the order of its ids, element by element, into
// accumulators that stay in registers.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace neuroshard {

/// The position before `position`.
static Value previous(const KernelBody &body, Value position) {
  return arith::SubIOp::create(body.b, position, body.rows.index(1));
}

void emitPooledLookup(const KernelBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  Value weights = body.arguments[0], ids = body.arguments[1];
  Value offsets = body.arguments[2], sampleWeights = body.arguments[3];
  Value out = body.arguments[4];
  Value outStride =
      arith::IndexCastOp::create(b, b.getIndexType(), body.arguments[5]);
  Value one = rows.index(1);
  Value last = previous(body, loadIndex(b, offsets, body.end));

  forEachItem(body, [&](Value bag) {
    Value first = loadIndex(b, offsets, bag);
    Value limit = loadIndex(b, offsets, arith::AddIOp::create(b, bag, one));
    Value outRow = arith::MulIOp::create(b, bag, outStride);
    rows.forEachBlock([&](const ColumnBlock &block) {
      auto sum = scf::ForOp::create(b, first, limit, one, rows.zeros(block));
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(sum.getBody());
        Value position = sum.getInductionVar();
        rows.prefetch({weights, loadAhead(b, ids, position, last)}, block,
                      /*forWrite=*/false);
        Row row = rows.read({weights, loadIndex(b, ids, position)}, block);
        if (body.spec.weighted)
          row = rows.scale(memref::LoadOp::create(b, sampleWeights, position),
                           row);
        scf::YieldOp::create(b, rows.add(Row(sum.getRegionIterArgs()), row));
      }
      rows.write(Row(sum.getResults()), {out, outRow}, block);
    });
  });
}

void emitRowLookup(const KernelBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  Value weights = body.arguments[0], ids = body.arguments[1];
  Value out = body.arguments[4];
  Value outStride =
      arith::IndexCastOp::create(b, b.getIndexType(), body.arguments[5]);
  Value last = previous(body, body.end);

  forEachItem(body, [&](Value position) {
    Value ahead = loadAhead(b, ids, position, last);
    Value id = loadIndex(b, ids, position);
    Value outRow = arith::MulIOp::create(b, position, outStride);
    rows.forEachBlock([&](const ColumnBlock &block) {
      rows.prefetch({weights, ahead}, block, /*forWrite=*/false);
      rows.write(rows.read({weights, id}, block), {out, outRow}, block);
    });
  });
}

void emitWeightGradient(const KernelBody &body) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  Value weights = body.arguments[0], ids = body.arguments[1];
  Value gradientOffsets = body.arguments[2], gradients = body.arguments[3];
  Value out = body.arguments[4];
  Value last = previous(body, body.end);

  forEachItem(body, [&](Value position) {
    Value ahead = loadAhead(b, ids, position, last);
    Value id = loadIndex(b, ids, position);
    Value offset = loadIndex(b, gradientOffsets, position);
    Value dot = rows.sumColumns([&](const ColumnBlock &block) {
      rows.prefetch({weights, ahead}, block, /*forWrite=*/false);
      Row row = rows.read({weights, id}, block);
      return rows.multiply(row, rows.read({gradients, offset}, block));
    });
    rows.writeScalar(dot, out, position);
  });
}

} // namespace neuroshard
