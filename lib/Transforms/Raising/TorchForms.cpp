//===- TorchForms.cpp - Embeddings of the torch dialect -------------------===//

#include "TorchForms.h"
#include "Found/Offsets.h"
#include "Found/Values.h"
#include "RowSteps.h"
#include "TableSources.h"
#include "TorchTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

static bool isNone(Value value) {
  return isNamed(value.getDefiningOp(), "torch.constant.none");
}

/// The number of `torch.constant.int` or `torch.constant.bool`.
static std::optional<int64_t> constantOfTorch(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isNamed(op, "torch.constant.int") && !isNamed(op, "torch.constant.bool"))
    return std::nullopt;
  auto number = op->getAttrOfType<IntegerAttr>("value");
  if (!number || number.getValue().getBitWidth() > 64)
    return std::nullopt;
  return number.getType().isInteger(1) ? number.getValue().getZExtValue()
                                       : number.getValue().getSExtValue();
}

/// `value` as a builtin tensor, by torch-mlir's own conversion.
static Maker toBuiltin(Value value) {
  return [value](OpBuilder &b, Location loc) -> Value {
    if (isa<RankedTensorType>(value.getType()))
      return value;
    OperationState state(loc, "torch_c.to_builtin_tensor");
    state.addOperands(value);
    state.addTypes(builtinOfTorch(value.getType()));
    return b.create(state)->getResult(0);
  };
}

namespace {
class TorchEmbedding {
public:
  TorchEmbedding(Operation *op, Misses &misses) : op(op), misses(misses) {}

  std::optional<FoundLookup> findRows();
  std::optional<FoundLookup> findBags();
  std::optional<FoundLookup> findSelected();
  std::optional<FoundLookup> findIndexed(bool validInputs);

private:
  std::nullopt_t miss(std::string reason) {
    return misses.lookup(op, std::move(reason));
  }
  std::optional<FoundLookup> begin(Value idsOfTorch);
  std::optional<FoundLookup> beginRows(Value idsOfTorch);
  std::string setPadding(FoundLookup &found, Value padding, bool wraps);
  std::string setBags(FoundLookup &found);

  Operation *op;
  Misses &misses;
  RankedTensorType table, ids;
};
} // namespace

/// The table, the ids and the result.
std::optional<FoundLookup> TorchEmbedding::begin(Value idsOfTorch) {
  FoundLookup found;
  found.op = op;
  found.result = op->getResult(0);
  found.table = &op->getOpOperand(0);
  found.consumed = {op};
  table = builtinOfTorch(op->getOperand(0).getType());
  ids = builtinOfTorch(idsOfTorch.getType());
  found.type = builtinOfTorch(found.result.getType());
  if (!table || table.getRank() != 2 || !ids || !found.type ||
      found.type.getRank() < 1)
    return miss("table, ids and result must be a '!torch.vtensor' with known "
                "rank and element type; got: " +
                textOf(op->getOperand(0).getType()) + ", " +
                textOf(idsOfTorch.getType()) + ", " +
                textOf(found.result.getType()));
  if (!ids.getElementType().isInteger(32) &&
      !ids.getElementType().isInteger(64))
    return miss("ids must be si32 or si64, got: " +
                textOf(idsOfTorch.getType()));
  // torch-mlir does not always know the columns of a result.
  SmallVector<int64_t> shape(found.type.getShape());
  if (!fit(shape.back(), table.getDimSize(1)))
    return miss("the result must have the columns of the table, got: " +
                textOf(found.result.getType()));
  shape.back() = table.getDimSize(1);
  found.type = RankedTensorType::get(shape, found.type.getElementType());
  found.ids = toBuiltin(idsOfTorch);
  found.idsSource = idsOfTorch;
  return found;
}

/// The same, with one row for each id.
std::optional<FoundLookup> TorchEmbedding::beginRows(Value idsOfTorch) {
  std::optional<FoundLookup> found = begin(idsOfTorch);
  if (found && !fit(found->type.getShape().drop_back(), ids.getShape()))
    return miss("the result must have the dimensions of the ids and one more");
  return found;
}

std::string TorchEmbedding::setPadding(FoundLookup &found, Value padding,
                                       bool wraps) {
  if (isNone(padding))
    return "";
  std::optional<int64_t> row = constantOfTorch(padding);
  if (!row)
    return "padding_idx must be a constant";
  if (*row == -1 || (*row < 0 && !wraps))
    return "";
  if (*row < 0)
    *row += table.getDimSize(0);
  if (*row < 0 || *row >= table.getDimSize(0))
    return "padding_idx must be a row of the table, got: " +
           std::to_string(*row);
  found.paddingIdx = *row;
  return "";
}

std::optional<FoundLookup> TorchEmbedding::findRows() {
  if (op->getNumOperands() != 5 || op->getNumResults() != 1)
    return miss("it must have the operands weight, indices, padding_idx, "
                "scale_grad_by_freq and sparse");
  std::optional<FoundLookup> found = beginRows(op->getOperand(1));
  if (!found)
    return std::nullopt;
  if (constantOfTorch(op->getOperand(3)) != 0)
    return miss("scale_grad_by_freq must be the constant false: lookups do not "
                "scale gradients");
  std::string reason = setPadding(*found, op->getOperand(2), /*wraps=*/false);
  if (!reason.empty())
    return miss(reason);
  return found;
}

std::string TorchEmbedding::setBags(FoundLookup &found) {
  std::optional<int64_t> mode = constantOfTorch(op->getOperand(4)),
                         includesLast = constantOfTorch(op->getOperand(7));
  if (mode != 0 && mode != 1)
    return "its mode must be the constant 0 (sum) or 1 (mean): lookups of "
           "sharded tables have no maximum";
  if (!includesLast)
    return "include_last_offset must be a constant";
  RankedTensorType offsets = builtinOfTorch(op->getOperand(2).getType());
  if (ids.getRank() != 1 || !offsets || offsets.getRank() != 1 ||
      (!offsets.getElementType().isInteger(32) &&
       !offsets.getElementType().isInteger(64)))
    return "ids and offsets must have one dimension, offsets of si32 or si64";
  found.pooling = mode == 0 ? Pooling::Sum : Pooling::Mean;
  found.offsetsSource = op->getOperand(2);
  Maker given = toBuiltin(op->getOperand(2));
  found.offsets = given;
  found.addsLastOffset = *includesLast == 0;
  if (found.addsLastOffset)
    found.offsets = [given, idsOf = found.ids](OpBuilder &b, Location loc) {
      return withLastOffset(given(b, loc), idsOf)(b, loc);
    };
  if (isNone(op->getOperand(6)))
    return "";
  RankedTensorType weights = builtinOfTorch(op->getOperand(6).getType());
  if (mode != 0 || !weights || !weights.getElementType().isF32() ||
      weights.getRank() != 1)
    return "per_sample_weights must be f32, one for each id, and the mode a "
           "sum";
  found.weights = toBuiltin(op->getOperand(6));
  found.weightsSource = op->getOperand(6);
  return "";
}

std::optional<FoundLookup> TorchEmbedding::findBags() {
  bool hasPadding = !isNamed(op, "torch.aten.embedding_bag");
  if (op->getNumOperands() != (hasPadding ? 9u : 8u) ||
      op->getNumResults() != 4)
    return miss("it must have the operands of that torch operator and four "
                "results");
  std::optional<FoundLookup> found = begin(op->getOperand(1));
  if (!found)
    return std::nullopt;
  if (found->type.getRank() != 2)
    return miss("the result must have two dimensions, bags and columns");
  for (OpResult other : op->getResults().drop_front())
    if (!other.use_empty())
      return miss("its result " + std::to_string(other.getResultNumber()) +
                  " is used; a lookup has the bags' rows alone");
  if (constantOfTorch(op->getOperand(3)) != 0)
    return miss("scale_grad_by_freq must be the constant false: lookups do not "
                "scale gradients");
  if (std::string reason = setBags(*found); !reason.empty())
    return miss(reason);
  // With an optional padding_idx torch counts negative rows from the end, but
  // for torch-mlir -1 is none: it makes this op of exported ones, which say so.
  bool wraps = isNamed(op, "torch.aten.embedding_bag.padding_idx");
  if (hasPadding)
    if (std::string reason = setPadding(*found, op->getOperand(8), wraps);
        !reason.empty())
      return miss(reason);
  return found;
}

/// `index_select(table, dim, ids)`.
std::optional<FoundLookup> TorchEmbedding::findSelected() {
  if (op->getNumOperands() != 3 || op->getNumResults() != 1)
    return miss("it must have the operands self, dim and index");
  if (!isStored(op->getOperand(0)))
    return std::nullopt;
  if (constantOfTorch(op->getOperand(1)) != 0)
    return miss("its dim must be the constant 0: lookups select whole rows");
  return beginRows(op->getOperand(2));
}

/// `table[ids]`, where torch counts negative ids from the end.
std::optional<FoundLookup> TorchEmbedding::findIndexed(bool validInputs) {
  if (op->getNumOperands() != 2 || op->getNumResults() != 1)
    return miss("it must have the operands self and indices");
  if (!isStored(op->getOperand(0)))
    return std::nullopt;
  Operation *list = op->getOperand(1).getDefiningOp();
  if (!isNamed(list, "torch.prim.ListConstruct") || list->getNumOperands() != 1)
    return miss("lookups select whole rows by one index tensor");
  std::optional<FoundLookup> found = beginRows(list->getOperand(0));
  if (!found || validInputs)
    return found;
  if (ids.getElementType().isInteger(32) && table.getDimSize(0) > INT32_MAX)
    return miss("ids of si32 cannot name all rows of the table");
  found->guard = "negative ids are counted from the end first, unless the "
                 "option 'assume-valid-inputs' says that there are none";
  found->idsName = found->idsSource;
  // Ids that are counted from the end of a table are not those of another.
  found->idsSource = op->getResult(0);
  found->ids = mapped(found->ids, [rows = table.getDimSize(0)](
                                      OpBuilder &b, Location loc, Value id) {
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             id, numberLike(b, loc, id, 0));
    Value fromEnd =
        arith::AddIOp::create(b, loc, id, numberLike(b, loc, id, rows));
    return arith::SelectOp::create(b, loc, isNegative, fromEnd, id).getResult();
  });
  return found;
}

std::optional<FoundLookup>
neuroshard::raising::findTorchEmbedding(Operation *op, Misses &misses,
                                        bool validInputs) {
  llvm::StringRef name = op->getName().getStringRef();
  if (name == "torch.aten.embedding")
    return TorchEmbedding(op, misses).findRows();
  if (name == "torch.aten.embedding_bag" ||
      name == "torch.aten.embedding_bag.padding_idx" ||
      name == "torch.aten._embedding_bag")
    return TorchEmbedding(op, misses).findBags();
  if (name == "torch.aten.index_select")
    return TorchEmbedding(op, misses).findSelected();
  if (name == "torch.aten.index.Tensor" ||
      name == "torch.aten.index.Tensor_hacked_twin")
    return TorchEmbedding(op, misses).findIndexed(validInputs);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The only number of a list, counted from the front of `rank` dimensions.
static std::optional<int64_t> onlyDim(Value list, int64_t rank) {
  Operation *op = list.getDefiningOp();
  std::optional<int64_t> dim;
  if (isNamed(op, "torch.prim.ListConstruct") && op->getNumOperands() == 1)
    dim = constantOfTorch(op->getOperand(0));
  else
    dim = constantOfTorch(list);
  if (dim && *dim < 0)
    *dim += rank;
  return dim;
}

static RowStep reduceTorch(Operation *op, int64_t rank, RowStep::Kind kind) {
  RowStep step;
  std::optional<int64_t> dim = onlyDim(op->getOperand(1), rank);
  if (!dim || constantOfTorch(op->getOperand(2)) != 0 ||
      !isNone(op->getOperand(3)))
    return step;
  step.kind = kind;
  step.dim = *dim;
  return step;
}

/// `rows` times weights with a last dimension of 1.
static RowStep weighTorch(OpOperand &use, RankedTensorType rows) {
  RowStep step;
  Operation *other =
      use.getOwner()->getOperand(1 - use.getOperandNumber()).getDefiningOp();
  if (!isNamed(other, "torch.aten.unsqueeze") || other->getNumOperands() != 2)
    return step;
  RankedTensorType weights = builtinOfTorch(other->getOperand(0).getType());
  std::optional<int64_t> dim = onlyDim(other->getOperand(1), rows.getRank());
  if (!weights || !weights.getElementType().isF32() ||
      dim != rows.getRank() - 1 || weights.getRank() != rows.getRank() - 1 ||
      weights.getShape() != rows.getShape().drop_back())
    return step;
  // Sizes of 1 are repeated. Where one is unknown, the runtime compares the
  // number of weights with that of ids; with more that would not tell.
  if (llvm::count_if(weights.getShape(), ShapedType::isDynamic) > 1) {
    step.reason = "its weights have several unknown sizes, each of which may "
                  "be 1 and then be repeated, which lookups do not do; got: " +
                  textOf(other->getOperand(0).getType());
    return step;
  }
  step.kind = RowStep::Weigh;
  step.weights = toBuiltin(other->getOperand(0));
  step.weightsSource = other->getOperand(0);
  step.consumed = {other};
  return step;
}

RowStep neuroshard::raising::torchStep(OpOperand &use) {
  Operation *op = use.getOwner();
  RankedTensorType rows = builtinOfTorch(use.get().getType());
  if (!rows)
    return {};
  llvm::StringRef name = op->getName().getStringRef();
  if (name == "torch.aten.sum.dim_IntList" && op->getNumOperands() == 4)
    return reduceTorch(op, rows.getRank(), RowStep::Sum);
  if (name == "torch.aten.mean.dim" && op->getNumOperands() == 4)
    return reduceTorch(op, rows.getRank(), RowStep::Mean);
  if (name == "torch.aten.mul.Tensor" && op->getNumOperands() == 2)
    return weighTorch(use, rows);
  if (name == "torch.aten.div.Scalar" && op->getNumOperands() == 2)
    if (std::optional<int64_t> divisor = constantOfTorch(op->getOperand(1))) {
      RowStep step;
      step.kind = RowStep::Divide;
      step.divisor = static_cast<double>(*divisor);
      return step;
    }
  return {};
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

static bool isToBuiltin(Operation *op) {
  return isTorchCast(op) && isNamed(op, "torch_c.to_builtin_tensor");
}

static void convertArgument(BlockArgument argument) {
  RankedTensorType type = builtinOfTorch(argument.getType());
  if (!type || !llvm::all_of(argument.getUsers(), [&](Operation *user) {
        return isToBuiltin(user) && user->getResult(0).getType() == type;
      }))
    return;
  argument.setType(type);
  for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
    user->replaceAllUsesWith(ValueRange{argument});
    user->erase();
  }
}

void neuroshard::raising::convertSignature(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    convertArgument(argument);
  SmallVector<Type> results(function.getResultTypes());
  if (function.getBody().hasOneBlock())
    for (OpOperand &result :
         function.getBody().front().getTerminator()->getOpOperands()) {
      Operation *op = result.get().getDefiningOp();
      if (!isNamed(op, "torch_c.from_builtin_tensor") || !isTorchCast(op) ||
          !isa<RankedTensorType>(op->getOperand(0).getType()))
        continue;
      result.set(op->getOperand(0));
      results[result.getOperandNumber()] = result.get().getType();
      if (op->use_empty())
        op->erase();
    }
  SmallVector<Type> arguments(function.getBody().getArgumentTypes());
  function.setType(
      FunctionType::get(function.getContext(), arguments, results));
}
