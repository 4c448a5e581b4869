//===- Contraction.cpp - Matrix products among structured ops -------------===//

#include "Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace neuroshard {

/// What is extended to f32, or the value itself.
static Value beforeExtension(Value value) {
  auto extension = value.getDefiningOp<arith::ExtFOp>();
  return extension ? extension.getIn() : value;
}

/// Whether the body yields sum + left * right, in any order of operands.
static bool isMultiplyAdd(Block *body) {
  auto others = llvm::make_filter_range(
      *body, [](Operation &op) { return !isa<arith::ExtFOp>(op); });
  if (body->getNumArguments() != 3 ||
      std::distance(others.begin(), others.end()) != 3)
    return false;
  Value left = body->getArgument(0), right = body->getArgument(1);
  Value sum = body->getArgument(2);
  auto yield = cast<linalg::YieldOp>(body->getTerminator());
  auto add = yield.getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || !add.getType().isF32())
    return false;
  Value product = add.getLhs() == sum ? add.getRhs() : add.getLhs();
  if (product == sum || (add.getLhs() != sum && add.getRhs() != sum))
    return false;
  auto multiply = product.getDefiningOp<arith::MulFOp>();
  if (!multiply)
    return false;
  Value first = beforeExtension(multiply.getLhs());
  Value second = beforeExtension(multiply.getRhs());
  return (first == left && second == right) ||
         (first == right && second == left);
}

bool hasContiguousRows(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return type && type.getRank() > 0 &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides.back() == 1;
}

/// The operand, if each of its dimensions follows a loop.
static std::optional<ContractionOperand> operandOf(Value buffer,
                                                   AffineMap map) {
  if (!isa<MemRefType>(buffer.getType()) || !map.isProjectedPermutation())
    return std::nullopt;
  ContractionOperand operand{buffer, {}};
  for (AffineExpr expr : map.getResults())
    operand.loops.push_back(cast<AffineDimExpr>(expr).getPosition());
  return operand;
}

std::optional<Contraction> Contraction::match(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 1 ||
      !isMultiplyAdd(op.getBody()))
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto left = operandOf(op.getDpsInputs()[0], maps[0]);
  auto right = operandOf(op.getDpsInputs()[1], maps[1]);
  auto out = operandOf(op.getDpsInits()[0], maps[2]);
  if (!left || !right || !out || !hasContiguousRows(out->buffer))
    return std::nullopt;
  Contraction result{*left, *right, *out, 0, out->loops.back(), 0, {}};
  if (result.a.has(result.j))
    std::swap(result.a, result.b);
  SmallVector<utils::IteratorType> types = op.getIteratorTypesArray();
  result.k = std::distance(types.begin(),
                           llvm::find(types, utils::IteratorType::reduction));
  if (result.a.has(result.j) || !result.b.has(result.j) ||
      !result.a.has(result.k) || !result.b.has(result.k) ||
      result.c.has(result.k))
    return std::nullopt;
  auto isRow = [&](unsigned loop) {
    return result.a.has(loop) && !result.b.has(loop);
  };
  auto row = llvm::find_if(llvm::reverse(result.c.loops), isRow);
  if (row == result.c.loops.rend())
    return std::nullopt;
  result.i = *row;
  for (unsigned loop = 0; loop < types.size(); ++loop)
    if (loop != result.i && loop != result.j && loop != result.k) {
      if (!result.c.has(loop)) // Added up over a loop of no input.
        return std::nullopt;
      result.outer.push_back(loop);
    }
  return result;
}

} // namespace neuroshard
