//===- EmitLookup.cpp - Writes a lookup that was found --------------------===//

#include "EmitLookup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Sizes of `dims` of a tensor, as index values or attributes.
static SmallVector<OpFoldResult>
sizesOf(OpBuilder &b, Location loc, Value value, int64_t first, int64_t end) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t i = first; i < end; ++i)
    sizes.push_back(tensor::getMixedSize(b, loc, value, i));
  return sizes;
}

static OpFoldResult product(OpBuilder &b, Location loc,
                            ArrayRef<OpFoldResult> factors) {
  int64_t known = 1;
  Value unknown;
  for (OpFoldResult factor : factors) {
    if (std::optional<int64_t> size = getConstantIntValue(factor)) {
      known *= *size;
      continue;
    }
    Value value = cast<Value>(factor);
    unknown = unknown ? arith::MulIOp::create(b, loc, unknown, value) : value;
  }
  if (!unknown)
    return b.getIndexAttr(known);
  if (known == 1)
    return unknown;
  return arith::MulIOp::create(b, loc, unknown,
                               arith::ConstantIndexOp::create(b, loc, known))
      .getResult();
}

/// `value` with all dimensions in one.
static Value flatten(OpBuilder &b, Location loc, Value value) {
  RankedTensorType type = tensorOf(value);
  if (type.getRank() == 1)
    return value;
  if (type.getRank() == 0) {
    auto one = RankedTensorType::get({1}, type.getElementType());
    return tensor::ExpandShapeOp::create(b, loc, one, value,
                                         ArrayRef<ReassociationIndices>{});
  }
  ReassociationIndices all;
  for (int64_t i = 0; i < type.getRank(); ++i)
    all.push_back(i);
  return tensor::CollapseShapeOp::create(b, loc, value,
                                         ArrayRef<ReassociationIndices>{all});
}

/// Offsets of `samples` bags of `perSample` ids each.
static Value evenOffsets(OpBuilder &b, Location loc, OpFoldResult samples,
                         OpFoldResult perSample) {
  Value step = getValueOrCreateConstantIndexOp(b, loc, perSample);
  int64_t size = ShapedType::kDynamic;
  SmallVector<Value> dynamic;
  if (std::optional<int64_t> known = getConstantIntValue(samples)) {
    size = *known + 1;
  } else {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    dynamic.push_back(arith::AddIOp::create(b, loc, cast<Value>(samples), one));
  }
  return tensor::GenerateOp::create(
      b, loc, RankedTensorType::get({size}, b.getI64Type()), dynamic,
      [&](OpBuilder &body, Location inner, ValueRange bag) {
        Value offset = arith::MulIOp::create(body, inner, bag[0], step);
        tensor::YieldOp::create(
            body, inner,
            arith::IndexCastOp::create(body, inner, body.getI64Type(), offset));
      });
}

std::string neuroshard::raising::nameOf(Value value, llvm::StringRef prefix) {
  auto named = dyn_cast<NameLoc>(value.getLoc());
  if (named && !named.getName().empty())
    return named.getName().str();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return prefix.str() + std::to_string(argument.getArgNumber());
  return prefix.str();
}

std::string LookupEmitter::featureName(Value source) {
  std::string base = nameOf(source, "ids"), name = base;
  for (int number = 2; !names.insert(name).second; ++number)
    name = base + "_" + std::to_string(number);
  return name;
}

namespace {
/// The ops that a builder makes in its block.
struct NewOps : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    ops.push_back(op);
  }
  SmallVector<Operation *> ops;
};
} // namespace

/// Moves `op` up to right behind what it needs: all ids of a step must be there
/// before the first result.
static void moveUp(Operation *op) {
  Block *block = op->getBlock();
  Operation *last = nullptr;
  auto visit = [&](Value value) {
    Operation *definition = value.getDefiningOp();
    Operation *ancestor =
        definition ? block->findAncestorOpInBlock(*definition) : nullptr;
    if (ancestor && ancestor != op &&
        (!last || last->isBeforeInBlock(ancestor)))
      last = ancestor;
  };
  op->walk(
      [&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
  if (last)
    op->moveAfter(last);
  else
    op->moveBefore(block, block->begin());
}

/// The number of dimensions of ids that count the entries of their offsets: all
/// but the bags', and of rows that are not pooled the samples'.
static int64_t leadingDims(int64_t rank, int64_t bagRank) {
  return bagRank ? rank - bagRank : std::min<int64_t>(rank, 1);
}

LookupEmitter::Packed LookupEmitter::packedIds(const FoundLookup &found) {
  NewOps made;
  OpBuilder b(found.op, &made);
  // With offsets the ids have one dimension, whatever the result has.
  int64_t idRank = found.offsets ? 1 : found.type.getRank() - 1 + found.bagRank;
  auto key = std::make_tuple(found.idsSource.getAsOpaquePointer(),
                             found.offsetsSource.getAsOpaquePointer(),
                             found.weightsSource.getAsOpaquePointer(),
                             found.addsLastOffset, idRank,
                             leadingDims(idRank, found.bagRank));
  Packed &cached = packed[key];
  if (cached.jagged)
    return cached;
  Location loc = found.op->getLoc();
  Value ids = found.ids(b, loc), offsets;
  int64_t rank = tensorOf(ids).getRank();
  if (found.offsets) {
    offsets = found.offsets(b, loc);
  } else if (rank == 0) {
    offsets = evenOffsets(b, loc, b.getIndexAttr(1), b.getIndexAttr(1));
  } else {
    int64_t leading = leadingDims(rank, found.bagRank);
    offsets =
        evenOffsets(b, loc, product(b, loc, sizesOf(b, loc, ids, 0, leading)),
                    product(b, loc, sizesOf(b, loc, ids, leading, rank)));
  }
  SmallVector<Value> weights;
  if (found.weights)
    weights.push_back(flatten(b, loc, found.weights(b, loc)));
  std::string feature =
      featureName(found.idsName ? found.idsName : found.idsSource);
  auto pack = ir::PackOp::create(b, loc, llvm::StringRef(feature),
                                 flatten(b, loc, ids), offsets, weights);
  cached = {pack, tensorOf(ids)};
  llvm::StringRef computed = found.guard;
  if (found.addsLastOffset)
    computed = "the number of ids is added to its offsets, which end with the "
               "begin of the last bag";
  packs.push_back({pack, !found.offsets, rank, computed});
  llvm::erase_if(made.ops, [&](Operation *op) {
    return op->getBlock() != found.op->getBlock();
  });
  for (Operation *&op : llvm::reverse(made.ops))
    if (op != pack && isOpTriviallyDead(op)) {
      op->erase();
      op = nullptr;
    }
  for (Operation *op : made.ops)
    if (op)
      moveUp(op);
  return cached;
}

/// Rows [n, dim] in the shape of `found.type`.
static Value shaped(OpBuilder &b, Location loc, Value rows,
                    const FoundLookup &found) {
  int64_t rank = found.type.getRank();
  if (rank == 1)
    return tensor::CollapseShapeOp::create(
        b, loc, rows, ArrayRef<ReassociationIndices>{{0, 1}});
  if (rank > 2) {
    ReassociationIndices leading;
    for (int64_t i = 0; i + 1 < rank; ++i)
      leading.push_back(i);
    Value ids = found.ids(b, loc);
    SmallVector<OpFoldResult> sizes = sizesOf(b, loc, ids, 0, rank - 1);
    SmallVector<int64_t> shape(tensorOf(ids).getShape().take_front(rank - 1));
    sizes.push_back(b.getIndexAttr(found.type.getDimSize(rank - 1)));
    shape.push_back(found.type.getDimSize(rank - 1));
    rows = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get(shape, found.type.getElementType()), rows,
        ArrayRef<ReassociationIndices>{leading, {rank - 1}}, sizes);
  }
  return rows.getType() == found.type
             ? rows
             : tensor::CastOp::create(b, loc, found.type, rows).getResult();
}

/// Number of rows of the lookup, or kDynamic.
static int64_t rowsOf(const FoundLookup &found, RankedTensorType ids) {
  if (found.offsets)
    return found.type.getDimSize(0);
  int64_t rows = 1;
  for (int64_t size : ids.getShape().drop_back(found.bagRank)) {
    if (ShapedType::isDynamic(size))
      return ShapedType::kDynamic;
    rows *= size;
  }
  return rows;
}

/// The ids of each sample, where all have the same known number.
static ir::FeatureAttr statsOf(OpBuilder &b, const FoundLookup &found) {
  if (!found.bagRank || ShapedType::isDynamic(found.bagSize))
    return {};
  FloatAttr mean = b.getF64FloatAttr(static_cast<double>(found.bagSize));
  return ir::FeatureAttr::get(b.getContext(), mean, mean,
                              b.getF64FloatAttr(1.0), std::nullopt, false);
}

ir::LookupOp LookupEmitter::emit(const FoundLookup &found, ir::TableOp table) {
  OpBuilder b(found.op);
  Location loc = found.op->getLoc();
  Packed ids = packedIds(found);
  auto jagged = cast<ir::JaggedType>(ids.jagged.getType());
  auto rowType = RankedTensorType::get({rowsOf(found, ids.ids), table.getDim()},
                                       found.type.getElementType());
  IntegerAttr padding;
  if (found.paddingIdx)
    padding = b.getI64IntegerAttr(*found.paddingIdx);
  auto lookup = ir::LookupOp::create(
      b, loc, rowType, ir::PoolingAttr::get(b.getContext(), found.pooling),
      FlatSymbolRefAttr::get(table), ids.jagged, jagged.getFeatures().front(),
      jagged.getWeighted() ? b.getUnitAttr() : UnitAttr(), padding,
      statsOf(b, found));
  Value rows = shaped(b, loc, lookup.getResult(), found);
  Type type = found.result.getType();
  if (isa<RankedTensorType>(type) && rows.getType() != type) {
    rows = tensor::CastOp::create(b, loc, type, rows);
  } else if (rows.getType() != type) {
    OperationState toTorch(loc, "torch_c.from_builtin_tensor");
    toTorch.addOperands(rows);
    toTorch.addTypes(type);
    rows = b.create(toTorch)->getResult(0);
  }
  Value(found.result).replaceAllUsesWith(rows);
  return lookup;
}
