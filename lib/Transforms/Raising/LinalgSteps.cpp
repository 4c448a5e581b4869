//===- LinalgSteps.cpp - Ops of tensor, arith and linalg on rows ----------===//

#include "Found/Values.h"
#include "RowSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

/// Weights that `linalg.broadcast` has repeated over the columns.
static Value broadcastOverColumns(Value value) {
  auto broadcast = value.getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast)
    return {};
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> dims = broadcast.getDimensions();
  bool last = dims.size() == 1 && dims[0] == type.getRank() - 1;
  return last && type.getElementType().isF32() ? broadcast.getInput() : Value();
}

static RowStep weighBy(Value weights) {
  RowStep step;
  if (!weights)
    return step;
  step.kind = RowStep::Weigh;
  step.weights = there(weights);
  step.weightsSource = weights;
  return step;
}

/// By weights with a last dimension of 1, as torch-mlir has them.
static RowStep weighByColumn(Value column) {
  RowStep step = weighBy(column);
  if (auto expand = column.getDefiningOp<tensor::ExpandShapeOp>())
    step.weightsSource = expand.getSrc();
  step.weights = [column](OpBuilder &b, Location loc) -> Value {
    return withoutLastDim(b, loc, column);
  };
  return step;
}

static RowStep divideBy(Value divisor) {
  RowStep step;
  std::optional<double> number = splatOf(divisor);
  if (!number)
    return step;
  step.kind = RowStep::Divide;
  step.divisor = *number;
  return step;
}

RowStep neuroshard::raising::sumOver(int64_t dim, Value begin) {
  RowStep step;
  if (splatOf(begin) != 0.0) {
    step.reason = "its sum does not begin at zero";
    return step;
  }
  step.kind = RowStep::Sum;
  step.dim = dim;
  return step;
}

static RowStep reduceStep(linalg::ReduceOp op, OpOperand &use) {
  Block *body = op.getBody();
  if (op.getInputs().size() != 1 || use.getOperandNumber() != 0 ||
      op.getDimensions().size() != 1 || !op.hasPureTensorSemantics() ||
      addedTo(body->getTerminator()->getOperand(0), body->getArgument(1)) !=
          body->getArgument(0))
    return {};
  return sumOver(op.getDimensions()[0], op.getInits()[0]);
}

/// A generic over the dimensions of the rows in their order.
class GenericStep {
public:
  GenericStep(linalg::GenericOp op, OpOperand &use)
      : op(op), rows(use.getOperandNumber()), maps(op.getIndexingMapsArray()) {}

  RowStep find();

private:
  /// The step if `value` is an argument of the body whose operand has the rows'
  /// leading dimensions, or these and one of size 1.
  RowStep weighByArgument(Value value);
  RowStep elementwise(Value element);

  linalg::GenericOp op;
  unsigned rows;
  SmallVector<AffineMap> maps;
};

RowStep GenericStep::weighByArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody() ||
      argument.getArgNumber() >= op.getNumDpsInputs() ||
      !argument.getType().isF32())
    return {};
  Value operand = op.getInputs()[argument.getArgNumber()];
  AffineMap map = maps[argument.getArgNumber()];
  unsigned numIdLoops = op.getNumLoops() - 1;
  AffineMap perId =
      AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext())
          .getMajorSubMap(numIdLoops);
  if (map == perId)
    return weighBy(operand);
  bool isColumn =
      map.getNumResults() == op.getNumLoops() &&
      map.getMajorSubMap(numIdLoops) == perId &&
      map.getResult(numIdLoops) == getAffineConstantExpr(0, op.getContext()) &&
      cast<RankedTensorType>(operand.getType()).getDimSize(numIdLoops) == 1;
  return isColumn ? weighByColumn(operand) : RowStep();
}

/// `element` is a product or quotient of the row's element.
RowStep GenericStep::elementwise(Value element) {
  Value own = op.getBody()->getArgument(rows);
  if (auto product = element.getDefiningOp<arith::MulFOp>()) {
    if (product.getLhs() == own)
      return weighByArgument(product.getRhs());
    return product.getRhs() == own ? weighByArgument(product.getLhs())
                                   : RowStep();
  }
  if (auto quotient = element.getDefiningOp<arith::DivFOp>())
    if (quotient.getLhs() == own) {
      Value divisor = quotient.getRhs();
      if (auto argument = dyn_cast<BlockArgument>(divisor))
        if (argument.getOwner() == op.getBody() &&
            argument.getArgNumber() < op.getNumDpsInputs())
          divisor = op.getInputs()[argument.getArgNumber()];
      return divideBy(divisor);
    }
  RowStep step;
  auto wider = element.getDefiningOp<arith::ExtFOp>();
  if (wider && wider.getIn() == own && element.getType().isF32())
    step.kind = RowStep::Same;
  return step;
}

RowStep GenericStep::find() {
  if (op.getNumResults() != 1 || !op.hasPureTensorSemantics() ||
      rows >= op.getNumDpsInputs() || !maps[rows].isIdentity() ||
      !llvm::all_of(*op.getBody(), [](Operation &inner) {
        return inner.hasTrait<OpTrait::IsTerminator>() || isPure(&inner);
      }))
    return {};
  Value element = op.getBody()->getTerminator()->getOperand(0);
  Value before = op.getBody()->getArguments().back();
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  if (loops.empty()) {
    if (!maps.back().isIdentity() || !before.use_empty())
      return {};
    return elementwise(element);
  }
  if (loops.size() != 1 || maps.back() != AffineMap::getMultiDimIdentityMap(
                                              op.getNumLoops(), op.getContext())
                                              .dropResult(loops[0]))
    return {};
  RowStep step = sumOver(loops[0], op.getOutputs()[0]);
  element = addedTo(element, before);
  if (!element)
    return {};
  if (step.kind == RowStep::Other)
    return step;
  if (element == op.getBody()->getArgument(rows))
    return step;
  RowStep weigh = elementwise(element);
  if (weigh.kind != RowStep::Weigh)
    return {};
  step.weights = weigh.weights;
  step.weightsSource = weigh.weightsSource;
  return step;
}

RowStep neuroshard::raising::linalgStep(OpOperand &use) {
  Operation *op = use.getOwner();
  RowStep step;
  if (isa<tensor::CastOp>(op) ||
      (isa<arith::ExtFOp>(op) &&
       cast<ShapedType>(op->getResult(0).getType()).getElementType().isF32())) {
    step.kind = RowStep::Same;
    return step;
  }
  if (isa<tensor::ExpandShapeOp>(op)) {
    step.kind = RowStep::Reshape;
    return step;
  }
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return reduceStep(reduce, use);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return GenericStep(generic, use).find();
  unsigned other = 1 - use.getOperandNumber();
  if (isa<arith::MulFOp>(op) ||
      (isa<linalg::MulOp>(op) && use.getOperandNumber() < 2))
    return weighBy(broadcastOverColumns(op->getOperand(other)));
  if ((isa<arith::DivFOp>(op) || isa<linalg::DivOp>(op)) &&
      use.getOperandNumber() == 0)
    return divideBy(op->getOperand(1));
  return step;
}
