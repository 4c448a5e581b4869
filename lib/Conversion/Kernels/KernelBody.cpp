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
                     llvm::function_ref<Term(Value position)> emitTerm) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  auto loop =
      scf::ForOp::create(b, span.first, span.limit, rows.index(inFlight), sum);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Term> terms;
  for (int64_t i = 0; i < inFlight; ++i) {
    Value position = loop.getInductionVar();
    if (i > 0)
      position = arith::AddIOp::create(b, position, rows.index(i));
    terms.push_back(emitTerm(position));
  }
  body.inputs.finishIds();
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
            Row sum, int64_t inFlight,
            llvm::function_ref<Term(Value position)> emitTerm) {
  ImplicitLocOpBuilder &b = body.b;
  RowBuilder &rows = body.rows;
  if (inFlight > 1) {
    Value round = rows.index(inFlight);
    Value count = arith::SubIOp::create(b, span.limit, span.first);
    Value rest = arith::RemUIOp::create(b, count, round);
    Value middle = arith::SubIOp::create(b, span.limit, rest);
    sum = addRounds(body, block, {span.first, middle}, sum, inFlight, emitTerm);
    span.first = middle;
  }
  return addRounds(body, block, span, sum, 1, emitTerm);
}

Value loadIndex(ImplicitLocOpBuilder &b, Value memref, Value position) {
  Value element = memref::LoadOp::create(b, memref, position);
  return arith::IndexCastUIOp::create(b, b.getIndexType(), element);
}

void emitBody(const KernelBody &body) {
  switch (body.spec.kind) {
  case KernelKind::Lookup:
    return body.spec.pooled ? emitPooledLookup(body) : emitRowLookup(body);
  case KernelKind::WeightGradient:
    return emitWeightGradient(body);
  case KernelKind::Update:
    return emitUpdate(body);
  case KernelKind::Reduce:
    return emitReduce(body);
  case KernelKind::Apply:
    return emitApply(body);
  case KernelKind::Partial:
    return emitPartial(body);
  }
}

} // namespace neuroshard
