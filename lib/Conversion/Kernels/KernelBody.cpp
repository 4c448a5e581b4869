//===- KernelBody.cpp - What the bodies of the kernels share --------------===//

#include "KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

KernelInputs::~KernelInputs() = default;

/// A loop over [first, limit) that adds `inFlight` terms in each round.
static Row addRounds(const KernelBody &body, const ColumnBlock &block,
                     Span span, Row sum, int64_t inFlight,
                     EmitTerms emitTerms) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  auto loop =
      scf::ForOp::create(b, span.first, span.limit, rows.index(inFlight), sum);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> positions{loop.getInductionVar()};
  for (int64_t i = 1; i < inFlight; ++i)
    positions.push_back(
        arith::AddIOp::create(b, positions.front(), rows.index(i)));
  SmallVector<Term> terms = emitTerms(positions);
  SmallVector<Row> read;
  for (const Term &term : terms)
    read.push_back(rows.read(term.address, block));
  sum = Row(loop.getRegionIterArgs());
  for (auto [term, row] : llvm::zip_equal(terms, read))
    sum = rows.add(sum, term.factor ? rows.scale(term.factor, row) : row);
  scf::YieldOp::create(b, sum);
  return Row(loop.getResults());
}

Row emitSum(const KernelBody &body, const ColumnBlock &block, Span span,
            Row sum, int64_t inFlight, EmitTerms emitTerms) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  if (inFlight > 1) {
    Value round = rows.index(inFlight);
    Value count = arith::SubIOp::create(b, span.limit, span.first);
    Value rest = arith::RemUIOp::create(b, count, round);
    Value middle = arith::SubIOp::create(b, span.limit, rest);
    sum =
        addRounds(body, block, {span.first, middle}, sum, inFlight, emitTerms);
    span.first = middle;
  }
  return addRounds(body, block, span, sum, 1, emitTerms);
}

Value loadIndex(ImplicitLocOpBuilder &b, Value memref, Value position) {
  Value element = memref::LoadOp::create(b, memref, position);
  return arith::IndexCastUIOp::create(b, b.getIndexType(), element);
}

} // namespace neuroshard
