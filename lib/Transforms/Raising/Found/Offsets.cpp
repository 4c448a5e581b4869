//===- Offsets.cpp - Ids and offsets of bags ------------------------------===//

#include "Offsets.h"
#include "Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

static Value toIndex(OpBuilder &b, Location loc, Value number) {
  if (number.getType().isIndex())
    return number;
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

static Value offsetAt(OpBuilder &b, Location loc, Value offsets, Value bag) {
  return toIndex(b, loc, tensor::ExtractOp::create(b, loc, offsets, bag));
}

/// Elements [begin, end) of `values`, which is 1-D.
static Value slice(OpBuilder &b, Location loc, Value values, Value begin,
                   Value end) {
  Value size = arith::SubIOp::create(b, loc, end, begin);
  auto type = cast<RankedTensorType>(values.getType());
  return tensor::ExtractSliceOp::create(
      b, loc,
      RankedTensorType::get({ShapedType::kDynamic}, type.getElementType()),
      values, ArrayRef<OpFoldResult>{begin}, ArrayRef<OpFoldResult>{size},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

void neuroshard::raising::useOffsets(FoundLookup &found, Value ids,
                                     Maker offsets, Maker count, Value weights,
                                     bool beginAtZero) {
  found.idsSource = ids;
  found.weightsSource = weights;
  auto used = [offsets, count](Value values) -> Maker {
    return [=](OpBuilder &b, Location loc) -> Value {
      Value all = offsets(b, loc);
      Value zero = arith::ConstantIndexOp::create(b, loc, 0);
      Value begin = offsetAt(b, loc, all, zero);
      Value end = offsetAt(b, loc, all, count(b, loc));
      // Bags may be empty and their offsets anything.
      end = arith::MaxSIOp::create(b, loc, begin, end);
      return slice(b, loc, idsFrom(values)(b, loc), begin, end);
    };
  };
  if (beginAtZero) {
    found.ids = idsFrom(ids);
    if (weights)
      found.weights = there(weights);
  } else {
    found.ids = used(ids);
    if (weights)
      found.weights = used(weights);
  }
  if (beginAtZero) {
    found.offsets = offsets;
    return;
  }
  found.guard = "bags may begin anywhere in the ids, which are cut first, "
                "unless the option 'assume-valid-inputs' says that offsets "
                "begin at 0";
  found.offsets = [=](OpBuilder &b, Location loc) -> Value {
    Value all = offsets(b, loc);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value begin = offsetAt(b, loc, all, zero);
    Value size = arith::AddIOp::create(b, loc, count(b, loc), one);
    return tensor::GenerateOp::create(
        b, loc, RankedTensorType::get({ShapedType::kDynamic}, b.getI64Type()),
        size, [&](OpBuilder &body, Location inner, ValueRange bag) {
          Value from = offsetAt(body, inner, all, bag[0]);
          Value offset = arith::SubIOp::create(body, inner, from, begin);
          tensor::YieldOp::create(body, inner,
                                  arith::IndexCastOp::create(
                                      body, inner, body.getI64Type(), offset));
        });
  };
}

/// `size` + 1, known if `size` is.
static OpFoldResult oneMore(OpBuilder &b, Location loc, OpFoldResult size) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return b.getIndexAttr(*known + 1);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  return arith::AddIOp::create(b, loc, cast<Value>(size), one).getResult();
}

Maker neuroshard::raising::withLastOffset(Value offsets, Maker ids) {
  return [offsets, ids](OpBuilder &b, Location loc) -> Value {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    OpFoldResult bags = tensor::getMixedSize(b, loc, offsets, 0);
    Value end = tensor::DimOp::create(b, loc, ids(b, loc), zero);
    Type element = cast<RankedTensorType>(offsets.getType()).getElementType();
    Value last = arith::IndexCastOp::create(b, loc, element, end);
    Value tail = tensor::FromElementsOp::create(b, loc, last);
    Value empty = tensor::EmptyOp::create(
        b, loc, ArrayRef<OpFoldResult>{oneMore(b, loc, bags)}, element);
    OpFoldResult unit = b.getIndexAttr(1), start = b.getIndexAttr(0);
    Value begins = tensor::InsertSliceOp::create(
        b, loc, offsets, empty, ArrayRef<OpFoldResult>{start},
        ArrayRef<OpFoldResult>{bags}, ArrayRef<OpFoldResult>{unit});
    return tensor::InsertSliceOp::create(
        b, loc, tail, begins, ArrayRef<OpFoldResult>{bags},
        ArrayRef<OpFoldResult>{unit}, ArrayRef<OpFoldResult>{unit});
  };
}
