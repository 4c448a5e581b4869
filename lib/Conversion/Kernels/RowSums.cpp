//===- RowSums.cpp - Sums of rows in order, read several at a time --------===//
//
// The loop of lookups over the ids of a bag, and of updates over the gradients
// of a row.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace neuroshard {

/// Reads the terms at `positions`, then adds them to `sum`. Returns the sums
/// after one term, after two, ...
static SmallVector<Row> addTerms(const KernelBody &body,
                                 const ColumnBlock &block, Row sum,
                                 ArrayRef<Value> positions,
                                 EmitTerms emitTerms) {
  RowBuilder &rows = body.rows;
  SmallVector<Term> terms = emitTerms(positions);
  SmallVector<Row> read, sums;
  for (const Term &term : terms)
    read.push_back(rows.read(term.address, block));
  for (auto [term, row] : llvm::zip_equal(terms, read)) {
    sum = rows.add(sum, term.factor ? rows.scale(term.factor, row) : row);
    sums.push_back(sum);
  }
  return sums;
}

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
  scf::YieldOp::create(b, addTerms(body, block, Row(loop.getRegionIterArgs()),
                                   positions, emitTerms)
                              .back());
  return Row(loop.getResults());
}

/// Adds the terms of [first, limit), at most `most`. It reads `most` terms at
/// once, the last one several times if there are fewer.
static Row addRest(const KernelBody &body, const ColumnBlock &block, Span span,
                   Row sum, int64_t most, EmitTerms emitTerms) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  // A loop of at most one iteration, as a branch.
  auto loop =
      scf::ForOp::create(b, span.first, span.limit, rows.index(most + 1), sum);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  Value last = arith::SubIOp::create(b, span.limit, rows.index(1));
  SmallVector<Value> positions{first}, areThere;
  for (int64_t i = 1; i < most; ++i) {
    Value position = arith::AddIOp::create(b, first, rows.index(i));
    areThere.push_back(arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                             position, span.limit));
    positions.push_back(arith::MinUIOp::create(b, position, last));
  }
  SmallVector<Row> sums = addTerms(body, block, Row(loop.getRegionIterArgs()),
                                   positions, emitTerms);
  Row chosen = sums.front();
  for (auto [isThere, longer] :
       llvm::zip_equal(areThere, llvm::drop_begin(sums)))
    for (auto [value, other] : llvm::zip_equal(chosen, longer))
      value = arith::SelectOp::create(b, isThere, other, value);
  scf::YieldOp::create(b, chosen);
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
    return addRest(body, block, {middle, span.limit}, sum, inFlight - 1,
                   emitTerms);
  }
  return addRounds(body, block, span, sum, 1, emitTerms);
}

} // namespace neuroshard
