//===- StableHloForms.cpp - Rows gathered by StableHLO --------------------===//

#include "StableHloForms.h"
#include "Found/Values.h"
#include "RowSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

/// The numbers of `array<i64: 1, 4>` or `dense<[1, 4]> : tensor<2xi64>`.
static std::optional<SmallVector<int64_t>> numbersOf(Attribute attribute) {
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(attribute))
    return SmallVector<int64_t>(array.asArrayRef());
  auto dense = dyn_cast_or_null<DenseIntElementsAttr>(attribute);
  if (!dense)
    return std::nullopt;
  SmallVector<int64_t> numbers;
  for (APInt number : dense)
    numbers.push_back(number.getSExtValue());
  return numbers;
}

/// `key = [..]` or `key = n` in the text of `#stablehlo.gather<...>`; empty
/// where it is left out.
static std::optional<SmallVector<int64_t>> listIn(llvm::StringRef text,
                                                  llvm::StringRef key) {
  SmallVector<int64_t> numbers;
  size_t at = text.find((key + " =").str());
  // `start_index_map` is no part of another key, but `offset_dims` might be.
  while (at != llvm::StringRef::npos && at > 0 &&
         (llvm::isAlnum(text[at - 1]) || text[at - 1] == '_'))
    at = text.find((key + " =").str(), at + 1);
  if (at == llvm::StringRef::npos)
    return numbers;
  llvm::StringRef rest = text.drop_front(at + key.size() + 2).ltrim();
  llvm::StringRef list =
      rest.consume_front("[")
          ? rest.take_until([](char c) { return c == ']'; })
          : rest.take_until([](char c) { return c == ',' || c == '>'; });
  while (!list.trim().empty()) {
    llvm::StringRef item;
    std::tie(item, list) = list.split(',');
    int64_t number = 0;
    if (item.trim().getAsInteger(10, number))
      return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

namespace {
class Gather {
public:
  Gather(Operation *op, Misses &misses, bool validInputs)
      : op(op), misses(misses), validInputs(validInputs) {}

  std::optional<FoundLookup> find();

private:
  std::nullopt_t miss(std::string reason) {
    return misses.lookup(op, std::move(reason));
  }
  std::optional<SmallVector<int64_t>> sliceSizes();
  std::string checkDims();
  Maker makeIds();

  Operation *op;
  Misses &misses;
  bool validInputs;
  RankedTensorType table, indices, result;
  /// The ids, and whether they have a last dimension of 1 that is none.
  Value ids;
  bool hasIndexDim = false;
};
} // namespace

std::optional<SmallVector<int64_t>> Gather::sliceSizes() {
  if (isNamed(op, "stablehlo.gather"))
    return numbersOf(op->getAttr("slice_sizes"));
  Operation *sizes = op->getOperand(2).getDefiningOp();
  if (!isNamed(sizes, "stablehlo.constant") &&
      !isNamed(sizes, "arith.constant"))
    return std::nullopt;
  return numbersOf(sizes->getAttr("value"));
}

std::string Gather::checkDims() {
  auto numbers = dyn_cast_or_null<OpaqueAttr>(op->getAttr("dimension_numbers"));
  if (!numbers)
    return "expected 'dimension_numbers' as #stablehlo.gather<...>";
  llvm::StringRef text = numbers.getAttrData();
  auto is = [&](llvm::StringRef key, ArrayRef<int64_t> expected) {
    auto found = listIn(text, key);
    return found && llvm::equal(*found, expected);
  };
  if (!is("start_index_map", {0}))
    return "lookups select by one index in dimension 0 of the table "
           "(start_index_map = [0])";
  if (!is("collapsed_slice_dims", {0}) || !is("operand_batching_dims", {}) ||
      !is("start_indices_batching_dims", {}) ||
      !is("offset_dims", {result.getRank() - 1}))
    return "the result must be the dimensions of the ids and then the columns: "
           "collapsed_slice_dims = [0], offset_dims = [" +
           std::to_string(result.getRank() - 1) + "], no batching dimensions";
  auto dim = listIn(text, "index_vector_dim");
  int64_t last = dim && !dim->empty() ? (*dim)[0] : 0;
  hasIndexDim = last == indices.getRank() - 1;
  if (last != indices.getRank() &&
      !(hasIndexDim && indices.getDimSize(last) == 1))
    return "each id must be an index by itself: index_vector_dim = " +
           std::to_string(indices.getRank()) +
           ", or a last dimension of the ids of size 1";
  auto sizes = sliceSizes();
  if (!sizes || !llvm::equal(*sizes, ArrayRef<int64_t>{1, table.getDimSize(1)}))
    return "it must take whole rows: constant slice_sizes = [1, " +
           std::to_string(table.getDimSize(1)) + "]";
  SmallVector<int64_t> shape(indices.getShape());
  if (hasIndexDim)
    shape.pop_back();
  shape.push_back(table.getDimSize(1));
  if (!fit(result.getShape(), shape) ||
      result.getElementType() != table.getElementType())
    return "the result does not fit the table and the ids: " + textOf(result);
  return "";
}

/// Takes ids or weights from before ops that only add their last dimension, or
/// widen them.
static void lookThrough(Value &ids, bool &hasIndexDim) {
  while (Operation *op = ids.getDefiningOp()) {
    if (op->getNumOperands() != 1)
      return;
    auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = cast<RankedTensorType>(ids.getType());
    if (!from)
      return;
    bool widens = isNamed(op, "stablehlo.convert") &&
                  from.getElementType().isSignlessInteger(32) &&
                  to.getElementType().isSignlessInteger(64);
    bool addsDim = hasIndexDim &&
                   (isNamed(op, "stablehlo.reshape") ||
                    isNamed(op, "stablehlo.broadcast_in_dim")) &&
                   from.hasStaticShape() &&
                   from.getShape() == to.getShape().drop_back();
    // A broadcast may also exchange dimensions of one size.
    if (addsDim && isNamed(op, "stablehlo.broadcast_in_dim")) {
      auto dims = numbersOf(op->getAttr("broadcast_dimensions"));
      addsDim =
          dims && llvm::equal(*dims, llvm::seq<int64_t>(0, from.getRank()));
    }
    if (!widens && !addsDim)
      return;
    hasIndexDim &= !addsDim;
    ids = op->getOperand(0);
  }
}

/// StableHLO moves an index that is out of range to the nearest row.
static Value clamped(OpBuilder &b, Location loc, Value id, int64_t rows) {
  Value least = arith::MaxSIOp::create(b, loc, id, numberLike(b, loc, id, 0));
  return arith::MinSIOp::create(b, loc, least,
                                numberLike(b, loc, id, rows - 1));
}

Maker Gather::makeIds() {
  Maker taken = [ids = ids, dim = hasIndexDim](OpBuilder &b,
                                               Location loc) -> Value {
    return dim ? withoutLastDim(b, loc, ids) : ids;
  };
  if (validInputs)
    return taken;
  return mapped(taken, [rows = table.getDimSize(0)](OpBuilder &b, Location loc,
                                                    Value id) {
    return clamped(b, loc, id, rows);
  });
}

std::optional<FoundLookup> Gather::find() {
  table = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  indices = dyn_cast<RankedTensorType>(op->getOperand(1).getType());
  result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!table || !indices || !result)
    return miss("its types must be ranked tensors");
  if (!isa<FloatType>(table.getElementType()))
    return std::nullopt;
  if (table.getRank() != 2 || result.getRank() < 1)
    return miss("the table must have two dimensions, rows and columns, got: " +
                textOf(table));
  if (!indices.getElementType().isSignlessInteger(32) &&
      !indices.getElementType().isSignlessInteger(64))
    return miss("ids must be i32 or i64, got: " +
                textOf(indices.getElementType()));
  if (std::string reason = checkDims(); !reason.empty())
    return miss(reason);
  ids = op->getOperand(1);
  lookThrough(ids, hasIndexDim);
  auto idType = cast<RankedTensorType>(ids.getType()).getElementType();
  if (idType.isSignlessInteger(32) && table.getDimSize(0) > INT32_MAX)
    return miss("ids of i32 cannot name all rows of the table");
  FoundLookup found;
  found.op = op;
  found.result = op->getResult(0);
  found.type = result;
  found.table = &op->getOpOperand(0);
  found.ids = makeIds();
  if (!validInputs)
    found.guard = "ids out of range are moved to the nearest row first, unless "
                  "the option 'assume-valid-inputs' says that there are none";
  found.idsName = ids;
  // Ids that are moved into a table are not those of another.
  found.idsSource = validInputs ? ids : op->getResult(0);
  found.consumed = {op};
  return found;
}

std::optional<FoundLookup>
neuroshard::raising::findStableHloGather(Operation *op, Misses &misses,
                                         bool validInputs) {
  bool dynamic = isNamed(op, "stablehlo.dynamic_gather");
  if ((!dynamic && !isNamed(op, "stablehlo.gather")) ||
      op->getNumOperands() != (dynamic ? 3u : 2u) || op->getNumResults() != 1)
    return std::nullopt;
  return Gather(op, misses, validInputs).find();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Whether the region of a reduction adds its two arguments.
static bool adds(Region &region) {
  if (!region.hasOneBlock() || region.getNumArguments() != 2)
    return false;
  Block &block = region.front();
  if (block.getOperations().size() != 2)
    return false;
  Operation &add = block.front(), &end = block.back();
  return isNamed(&add, "stablehlo.add") && isNamed(&end, "stablehlo.return") &&
         add.getNumOperands() == 2 && end.getNumOperands() == 1 &&
         end.getOperand(0) == add.getResult(0) &&
         add.getOperand(0) != add.getOperand(1) &&
         llvm::is_contained(region.getArguments(), add.getOperand(0)) &&
         llvm::is_contained(region.getArguments(), add.getOperand(1));
}

RowStep neuroshard::raising::stableHloStep(OpOperand &use) {
  Operation *op = use.getOwner();
  RowStep step;
  auto rows = dyn_cast<RankedTensorType>(use.get().getType());
  if (!rows)
    return step;
  // Of one type, torch-mlir writes converts, too; what is sums up in f32.
  if (isNamed(op, "stablehlo.convert") && op->getNumOperands() == 1) {
    auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (to && (to == rows || to.getElementType().isF32()))
      step.kind = RowStep::Same;
    return step;
  }
  if (op->getNumOperands() != 2)
    return step;
  Value other = op->getOperand(1 - use.getOperandNumber());
  if (isNamed(op, "stablehlo.reduce")) {
    auto dims = numbersOf(op->getAttr("dimensions"));
    if (use.getOperandNumber() != 0 || !dims || dims->size() != 1 ||
        op->getNumRegions() != 1 || !adds(op->getRegion(0)))
      return step;
    return sumOver((*dims)[0], other);
  }
  if (isNamed(op, "stablehlo.divide") && use.getOperandNumber() == 0) {
    if (std::optional<double> divisor = splatOf(other)) {
      step.kind = RowStep::Divide;
      step.divisor = *divisor;
    }
    return step;
  }
  Operation *broadcast = other.getDefiningOp();
  if (!isNamed(op, "stablehlo.multiply") ||
      !isNamed(broadcast, "stablehlo.broadcast_in_dim") ||
      broadcast->getNumOperands() != 1)
    return step;
  Value weights = broadcast->getOperand(0);
  auto type = dyn_cast<RankedTensorType>(weights.getType());
  auto dims = numbersOf(broadcast->getAttr("broadcast_dimensions"));
  if (!type || !type.getElementType().isF32() || !dims ||
      !llvm::equal(*dims, llvm::seq<int64_t>(0, type.getRank())))
    return step;
  ArrayRef<int64_t> shape = type.getShape();
  // JAX gives them a last dimension of 1.
  bool isColumn = type.getRank() == rows.getRank() && shape.back() == 1;
  if (isColumn)
    shape = shape.drop_back();
  if (shape != rows.getShape().drop_back())
    return step;
  lookThrough(weights, isColumn);
  step.kind = RowStep::Weigh;
  step.weights = [weights, isColumn](OpBuilder &b, Location loc) -> Value {
    return isColumn ? withoutLastDim(b, loc, weights) : weights;
  };
  step.weightsSource = weights;
  step.consumed = {broadcast};
  return step;
}
