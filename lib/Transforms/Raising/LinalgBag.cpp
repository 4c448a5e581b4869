//===- LinalgBag.cpp - Bags with offsets in one generic -------------------===//

#include "LinalgBag.h"
#include "Found/Offsets.h"
#include "Found/Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

namespace {
/// Loops: 0 over bags, 1 over ids, 2 over columns.
class BagBody {
public:
  explicit BagBody(linalg::GenericOp op)
      : op(op), id(op.getBody()->getArgument(0)),
        begin(op.getBody()->getArgument(1)), sum(op.getBody()->getArgument(2)) {
  }

  bool match();
  tensor::ExtractOp getRow() const { return row; }

private:
  bool isLoop(Value value, uint64_t loop);
  bool isNextBag(Value value);
  bool isSize(Value value, Value tensor);
  bool isNextOffset(Value value);
  bool isFromBegin(Value condition);
  bool isBeforeEnd(Value condition);

  linalg::GenericOp op;
  Value id, begin, sum;
  tensor::ExtractOp row;
};
} // namespace

bool BagBody::isLoop(Value value, uint64_t loop) {
  auto index = beforeCasts(value).getDefiningOp<linalg::IndexOp>();
  return index && index.getDim() == loop;
}

bool BagBody::isNextBag(Value value) {
  auto next = beforeCasts(value).getDefiningOp<arith::AddIOp>();
  return next &&
         ((isLoop(next.getLhs(), 0) && constantOf(next.getRhs()) == 1) ||
          (isLoop(next.getRhs(), 0) && constantOf(next.getLhs()) == 1));
}

bool BagBody::isSize(Value value, Value tensor) {
  int64_t known = cast<RankedTensorType>(tensor.getType()).getDimSize(0);
  if (!ShapedType::isDynamic(known))
    return constantOf(value) == known;
  value = beforeCasts(value);
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    return dim.getSource() == tensor && dim.getConstantIndex() == 0;
  if (auto generic = tensor.getDefiningOp<linalg::GenericOp>())
    tensor = generic.getOutputs()[cast<OpResult>(tensor).getResultNumber()];
  auto empty = tensor.getDefiningOp<tensor::EmptyOp>();
  return empty && beforeCasts(empty.getDynamicSizes()[0]) == value;
}

/// offsets[bag + 1], and for the last bag the number of ids.
bool BagBody::isNextOffset(Value value) {
  auto select = beforeCasts(value).getDefiningOp<arith::SelectOp>();
  if (!select)
    return false;
  Value ids = op.getInputs()[0], offsets = op.getInputs()[1];
  auto isLast = select.getCondition().getDefiningOp<arith::CmpIOp>();
  auto next =
      beforeCasts(select.getFalseValue()).getDefiningOp<tensor::ExtractOp>();
  if (!isLast || isLast.getPredicate() != arith::CmpIPredicate::eq || !next ||
      next.getTensor() != offsets || next.getIndices().size() != 1)
    return false;
  bool compares =
      (isSize(isLast.getLhs(), offsets) && isNextBag(isLast.getRhs())) ||
      (isSize(isLast.getRhs(), offsets) && isNextBag(isLast.getLhs()));
  // What is read for the last bag is not used: torch-mlir reads the first.
  Value place = next.getIndices()[0];
  auto inBounds = beforeCasts(place).getDefiningOp<arith::SelectOp>();
  if (inBounds && inBounds.getCondition() == select.getCondition())
    place = inBounds.getFalseValue();
  return compares && isNextBag(place) && isSize(select.getTrueValue(), ids);
}

/// The bag's offset is at most the place of the id.
bool BagBody::isFromBegin(Value condition) {
  auto is = [&](Value value, arith::CmpIPredicate predicate) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getPredicate() == predicate &&
           beforeCasts(compare.getLhs()) == begin &&
           isLoop(compare.getRhs(), 1);
  };
  if (is(condition, arith::CmpIPredicate::sle))
    return true;
  auto either = condition.getDefiningOp<arith::OrIOp>();
  return either && ((is(either.getLhs(), arith::CmpIPredicate::slt) &&
                     is(either.getRhs(), arith::CmpIPredicate::eq)) ||
                    (is(either.getRhs(), arith::CmpIPredicate::slt) &&
                     is(either.getLhs(), arith::CmpIPredicate::eq)));
}

bool BagBody::isBeforeEnd(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::slt &&
         isLoop(compare.getLhs(), 1) && isNextOffset(compare.getRhs());
}

bool BagBody::match() {
  auto select = op.getBody()
                    ->getTerminator()
                    ->getOperand(0)
                    .getDefiningOp<arith::SelectOp>();
  if (!select || select.getFalseValue() != sum)
    return false;
  auto both = select.getCondition().getDefiningOp<arith::AndIOp>();
  Value element = addedTo(select.getTrueValue(), sum);
  row = element ? element.getDefiningOp<tensor::ExtractOp>() : nullptr;
  if (!both || !row || row.getIndices().size() != 2 ||
      beforeCasts(row.getIndices()[0]) != id ||
      !isLoop(row.getIndices()[1], 2) ||
      row.getTensor().getParentRegion() == &op.getRegion())
    return false;
  return (isFromBegin(both.getLhs()) && isBeforeEnd(both.getRhs())) ||
         (isFromBegin(both.getRhs()) && isBeforeEnd(both.getLhs()));
}

/// Whether the op has the loops, operands and maps of bags with offsets.
static bool hasLoops(linalg::GenericOp op) {
  using utils::IteratorType;
  if (!op.hasPureTensorSemantics() || op.getNumResults() != 1 ||
      op.getNumDpsInputs() != 2 || op.getNumLoops() != 3 ||
      op.getIteratorTypesArray() !=
          SmallVector<IteratorType>{IteratorType::parallel,
                                    IteratorType::reduction,
                                    IteratorType::parallel})
    return false;
  AffineMap all = AffineMap::getMultiDimIdentityMap(3, op.getContext());
  return op.getIndexingMapsArray() ==
         SmallVector<AffineMap>{all.getSubMap({1}), all.getSubMap({0}),
                                all.getSubMap({0, 2})};
}

std::optional<FoundLookup>
neuroshard::raising::findLinalgBag(Operation *op, Misses &misses,
                                   bool validInputs) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !hasLoops(generic))
    return std::nullopt;
  BagBody body(generic);
  if (!body.match())
    return std::nullopt;
  Value ids = generic.getInputs()[0], offsets = generic.getInputs()[1];
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  RankedTensorType table = typeBeforeCasts(body.getRow().getTensor());
  auto isInteger = [](Value tensor) {
    Type element = cast<ShapedType>(tensor.getType()).getElementType();
    return isIdType(element) && !element.isIndex();
  };
  if (!isInteger(ids) || !isInteger(offsets))
    return misses.lookup(op, "ids and offsets must be i32 or i64");
  if (!type.getElementType().isF32() || splatOf(generic.getOutputs()[0]) != 0.0)
    return misses.lookup(op, "it must add up in f32, from zero on");
  if (table.getRank() != 2 || type.getDimSize(1) != table.getDimSize(1) ||
      !llvm::all_of(*generic.getBody(), [](Operation &inner) {
        return inner.hasTrait<OpTrait::IsTerminator>() || isPure(&inner);
      }))
    return misses.lookup(op, "it must take all columns of a row and do nothing "
                             "else, got: " +
                                 textOf(type));
  FoundLookup found;
  found.op = op;
  found.result = op->getResult(0);
  found.type = type;
  found.table = &body.getRow().getTensorMutable();
  found.pooling = Pooling::Sum;
  found.addsLastOffset = true;
  found.consumed = {op};
  Maker count = [offsets](OpBuilder &b, Location loc) -> Value {
    return tensor::DimOp::create(b, loc, offsets, 0);
  };
  useOffsets(found, ids, withLastOffset(offsets, there(ids)), count, Value(),
             validInputs);
  found.offsetsSource = offsets;
  return found;
}
