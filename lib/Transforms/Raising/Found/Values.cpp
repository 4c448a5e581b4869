//===- Values.cpp - Queries and makers of values for raising --------------===//

#include "Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

bool neuroshard::raising::fit(ArrayRef<int64_t> shape,
                              ArrayRef<int64_t> other) {
  return shape.size() == other.size() &&
         llvm::all_of(llvm::zip(shape, other), [](auto sizes) {
           auto [one, two] = sizes;
           return one == two || ShapedType::isDynamic(one) ||
                  ShapedType::isDynamic(two);
         });
}

Maker neuroshard::raising::there(Value value) {
  return [value](OpBuilder &, Location) { return value; };
}

Maker neuroshard::raising::idsFrom(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.getElementType().isIndex())
    return there(tensor);
  return [tensor, type](OpBuilder &b, Location loc) -> Value {
    return arith::IndexCastOp::create(
        b, loc, RankedTensorType::get(type.getShape(), b.getI64Type()), tensor);
  };
}

Value neuroshard::raising::numberLike(OpBuilder &b, Location loc, Value id,
                                      int64_t number) {
  return arith::ConstantOp::create(b, loc,
                                   b.getIntegerAttr(id.getType(), number));
}

Maker neuroshard::raising::mapped(Maker ids, IdMap map) {
  return [ids = std::move(ids), map = std::move(map)](OpBuilder &b,
                                                      Location loc) -> Value {
    Value taken = ids(b, loc);
    auto type = cast<RankedTensorType>(taken.getType());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, taken);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> loops(type.getRank(),
                                           utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, loc, type, taken, empty, ArrayRef<AffineMap>{identity, identity},
        loops, [&](OpBuilder &body, Location inner, ValueRange elements) {
          linalg::YieldOp::create(body, inner, map(body, inner, elements[0]));
        });
    return generic.getResult(0);
  };
}

Value neuroshard::raising::withoutLastDim(OpBuilder &b, Location loc,
                                          Value indices) {
  int64_t rank = cast<RankedTensorType>(indices.getType()).getRank();
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i + 1 < rank; ++i)
    groups.push_back({i});
  if (!groups.empty())
    groups.back().push_back(rank - 1);
  // Folds into what was expanded.
  return b.createOrFold<tensor::CollapseShapeOp>(loc, indices, groups);
}

Value neuroshard::raising::beforeReshapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
            op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool neuroshard::raising::isIdType(Type element) {
  return element.isSignlessInteger(32) || element.isSignlessInteger(64) ||
         element.isIndex();
}

std::optional<double> neuroshard::raising::splatOf(Value value) {
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements))) {
    if (!elements.isSplat() || !isa<FloatType>(elements.getElementType()))
      return std::nullopt;
    return elements.getSplatValue<APFloat>().convertToDouble();
  }
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return splatOf(fill.getInputs()[0]);
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return splatOf(splat.getInput());
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op))
    return splatOf(broadcast.getInput());
  llvm::StringRef name = op->getName().getStringRef();
  if (name == "stablehlo.constant") {
    elements = dyn_cast_or_null<DenseElementsAttr>(op->getAttr("value"));
    if (!elements || !elements.isSplat() ||
        !isa<FloatType>(elements.getElementType()))
      return std::nullopt;
    return elements.getSplatValue<APFloat>().convertToDouble();
  }
  if ((name == "stablehlo.broadcast_in_dim" && op->getNumOperands() == 1) ||
      isa<tensor::CastOp>(op))
    return splatOf(op->getOperand(0));
  return std::nullopt;
}

Value neuroshard::raising::beforeCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    bool narrows = isa<arith::IndexCastOp>(op) && value.getType().isInteger(32);
    if (narrows || !isa<arith::IndexCastOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<int64_t> neuroshard::raising::constantOf(Value value) {
  APInt number;
  if (matchPattern(beforeCasts(value), m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64)
    return number.getSExtValue();
  return std::nullopt;
}

RankedTensorType neuroshard::raising::typeBeforeCasts(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  while (auto op = tensor.getDefiningOp<tensor::CastOp>()) {
    auto before = dyn_cast<RankedTensorType>(op.getSource().getType());
    if (!before)
      break;
    tensor = op.getSource();
    type = before;
  }
  return type;
}

Operation *neuroshard::raising::namesSymbol(ModuleOp module,
                                            StringAttr symbol) {
  Operation *found = nullptr;
  module->walk([&](Operation *op) {
    auto isName = [&](SymbolRefAttr name) {
      return name.getLeafReference() == symbol ? WalkResult::interrupt()
                                               : WalkResult::advance();
    };
    if (!op->getAttrDictionary().walk(isName).wasInterrupted())
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

Value neuroshard::raising::addedTo(Value value, Value term) {
  auto add = value.getDefiningOp<arith::AddFOp>();
  if (!add)
    return {};
  if (add.getLhs() == term)
    return add.getRhs();
  return add.getRhs() == term ? add.getLhs() : Value();
}
