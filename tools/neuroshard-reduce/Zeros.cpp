//===- Zeros.cpp - Zeros in place of results ------------------------------===//

#include "Zeros.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;

using ir::JaggedType;

static bool isNumber(Type type) {
  return type.isIntOrIndexOrFloat() && !isa<NoneType>(type);
}

bool neuroshard::hasZeros(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return isNumber(type);
  return isNumber(tensor.getElementType()) &&
         llvm::none_of(tensor.getShape().drop_front(tensor.getRank() > 0),
                       ShapedType::isDynamic);
}

/// The number of samples where `op` is, or of the ids that an unpooled lookup
/// reads.
static Value batchAt(Operation *op, RewriterBase &rewriter) {
  Location loc = op->getLoc();
  auto isJagged = [](Value value) { return isa<JaggedType>(value.getType()); };
  auto lookup = dyn_cast<ir::LookupOp>(op);
  if (lookup && lookup.getPooling() == Pooling::None)
    return ir::NumIdsOp::create(rewriter, loc, lookup.getIds(),
                                lookup.getFeatureAttr());
  auto operand = llvm::find_if(op->getOperands(), isJagged);
  if (operand != op->operand_end())
    return ir::BatchSizeOp::create(rewriter, loc, *operand);
  if (auto function = op->getParentOfType<func::FuncOp>()) {
    auto argument = llvm::find_if(function.getArguments(), isJagged);
    if (argument != function.getArguments().end())
      return ir::BatchSizeOp::create(rewriter, loc, *argument);
  }
  return arith::ConstantIndexOp::create(rewriter, loc, 1);
}

static Value zeros(Operation *op, Type type, RewriterBase &rewriter) {
  Location loc = op->getLoc();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.hasStaticShape())
    return arith::ConstantOp::create(
        rewriter, loc, cast<TypedAttr>(rewriter.getZeroAttr(type)));
  Value zero = arith::ConstantOp::create(
      rewriter, loc,
      cast<TypedAttr>(rewriter.getZeroAttr(tensor.getElementType())));
  return tensor::SplatOp::create(rewriter, loc, zero, tensor,
                                 batchAt(op, rewriter));
}

void neuroshard::replaceByZeros(Operation *op, RewriterBase &rewriter) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> values;
  for (Type type : op->getResultTypes())
    values.push_back(zeros(op, type, rewriter));
  rewriter.replaceOp(op, values);
}

bool neuroshard::isZeros(Operation *op) {
  return isa<arith::ConstantOp, tensor::SplatOp, ir::BatchSizeOp, ir::NumIdsOp>(
      op);
}

bool neuroshard::isUnnamed(SymbolOpInterface symbol) {
  auto module = symbol->getParentOfType<ModuleOp>();
  return module && SymbolTable::symbolKnownUseEmpty(symbol.getNameAttr(),
                                                    &module.getBodyRegion());
}

void neuroshard::updateType(func::FuncOp function, RewriterBase &rewriter) {
  Operation *end = function.getBody().back().getTerminator();
  rewriter.modifyOpInPlace(function, [&] {
    function.setFunctionType(FunctionType::get(
        function.getContext(), function.getBody().front().getArgumentTypes(),
        end->getOperandTypes()));
  });
}
