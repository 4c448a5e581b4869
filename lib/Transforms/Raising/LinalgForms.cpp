//===- LinalgForms.cpp - Rows gathered by tensor and linalg ops -----------===//

#include "LinalgForms.h"
#include "Found/Values.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

//===----------------------------------------------------------------------===//
// tensor.gather
//===----------------------------------------------------------------------===//

std::optional<FoundLookup>
neuroshard::raising::findTensorGather(Operation *op, Misses &misses) {
  auto gather = dyn_cast<tensor::GatherOp>(op);
  if (!gather || !isa<FloatType>(gather.getSourceType().getElementType()))
    return std::nullopt;
  ArrayRef<int64_t> dims = gather.getGatherDims();
  if (dims.size() != 1 || dims[0] != 0)
    return misses.lookup(
        op, "lookups select whole rows by one index in dimension 0, got: "
            "gather_dims of " +
                std::to_string(dims.size()) + " dimensions, the first " +
                (dims.empty() ? "none" : std::to_string(dims[0])));
  RankedTensorType indices = gather.getIndicesType();
  if (!isIdType(indices.getElementType()))
    return misses.lookup(op, "ids must be i32, i64 or index, got: " +
                                 textOf(indices.getElementType()));
  FoundLookup found;
  found.op = op;
  found.result = gather.getResult();
  found.type = gather.getResultType();
  found.table = &gather.getSourceMutable();
  bool reduced = found.type.getRank() == indices.getRank();
  found.ids = [ids = Value(gather.getIndices()),
               reduced](OpBuilder &b, Location loc) -> Value {
    return idsFrom(reduced ? withoutLastDim(b, loc, ids) : ids)(b, loc);
  };
  found.idsSource = gather.getIndices();
  found.idsName = beforeReshapes(found.idsSource);
  found.consumed = {op};
  return found;
}

//===----------------------------------------------------------------------===//
// linalg.generic
//===----------------------------------------------------------------------===//

namespace {
/// What the body of a generic does for each element of its result.
class GatherBody {
public:
  GatherBody(linalg::GenericOp op, Misses &misses)
      : op(op), misses(misses), body(op.getBody()) {}

  std::optional<FoundLookup> find();

private:
  std::nullopt_t miss(std::string reason) {
    return misses.lookup(op, std::move(reason));
  }
  bool readsTable();
  std::optional<FoundLookup> findLoops();
  std::string checkOtherOps();
  bool isRangeCheck(cf::AssertOp check);
  std::string collectIndex();
  std::string checkSample();
  std::string checkSampleIndex(Operation *other, unsigned samples);
  bool isLoop(Value index, unsigned loop);
  std::optional<Value> operandOverIds(Value argument);
  Maker computedIds();
  Maker makeIds();
  AffineMap withoutColumn(AffineMap map);

  linalg::GenericOp op;
  Misses &misses;
  Block *body;
  tensor::ExtractOp extract;
  Value rowIndex;
  /// Ops of the body that compute the row index, in order.
  SmallVector<Operation *> indexOps;
  Value weight;
  unsigned column = 0;
  std::optional<unsigned> bagLoop;
};
} // namespace

/// The extract of an element of a two-dimensional tensor of floats, from
/// outside, at an index that is read from memory.
bool GatherBody::readsTable() {
  for (auto candidate : body->getOps<tensor::ExtractOp>()) {
    RankedTensorType type = candidate.getTensor().getType();
    if (!isa<FloatType>(type.getElementType()) || type.getRank() < 1 ||
        candidate.getTensor().getParentRegion() == body->getParent())
      continue;
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    options.filter = [&](Operation *other) {
      return other->getBlock() == body;
    };
    for (Value index : candidate.getIndices())
      (void)getBackwardSlice(index, &slice, options);
    auto readsIds = [&](Value value) {
      return isa<BlockArgument>(value) && value.getParentBlock() == body &&
             value.getType().isIntOrIndex();
    };
    bool found = llvm::any_of(candidate.getIndices(), readsIds);
    for (Operation *other : slice)
      found |= isa<tensor::ExtractOp>(other) ||
               llvm::any_of(other->getOperands(), readsIds);
    if (found) {
      extract = candidate;
      return true;
    }
  }
  return false;
}

/// The range checks of torch-mlir: the index against 0 or the rows.
bool GatherBody::isRangeCheck(cf::AssertOp check) {
  auto compare = check.getArg().getDefiningOp<arith::CmpIOp>();
  if (!compare || beforeCasts(compare.getLhs()) != beforeCasts(rowIndex))
    return false;
  std::optional<int64_t> bound = constantOf(compare.getRhs());
  if (auto dim = beforeCasts(compare.getRhs()).getDefiningOp<tensor::DimOp>())
    if (dim.getSource() == extract.getTensor() && dim.getConstantIndex() == 0)
      bound = typeBeforeCasts(extract.getTensor()).getDimSize(0);
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::sge:
    return bound == 0;
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return bound == typeBeforeCasts(extract.getTensor()).getDimSize(0);
  default:
    return false;
  }
}

std::string GatherBody::checkOtherOps() {
  for (Operation &other : *body) {
    if (auto check = dyn_cast<cf::AssertOp>(other)) {
      if (!isRangeCheck(check))
        return "its body asserts something else than the range of the ids";
      continue;
    }
    if (!other.hasTrait<OpTrait::IsTerminator>() && !isPure(&other))
      return "its body has an effect: '" + textOf(other.getName()) + "'";
  }
  return "";
}

/// Collects what computes the row index; the reason why it cannot be computed
/// for all ids beforehand.
std::string GatherBody::collectIndex() {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *other) { return other->getBlock() == body; };
  (void)getBackwardSlice(rowIndex, &slice, options);
  for (Operation *other : slice) {
    if (!isPure(other) || other->getNumRegions())
      return "the row index is computed by '" + textOf(other->getName()) + "'";
    auto loop = dyn_cast<linalg::IndexOp>(other);
    if (loop && loop.getDim() == column)
      return "the row index depends on the column";
    for (Value operand : other->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument || argument.getOwner() != body)
        continue;
      if (argument.getArgNumber() >= op.getNumDpsInputs())
        return "the row index depends on the result before it";
      AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
      if (map.isFunctionOfDim(column))
        return "the row index depends on the column";
    }
    indexOps.push_back(other);
  }
  return "";
}

/// Whether `index` is the counter of a loop.
bool GatherBody::isLoop(Value index, unsigned loop) {
  auto counter = beforeCasts(index).getDefiningOp<linalg::IndexOp>();
  return counter && counter.getDim() == loop;
}

/// An op of the row index may have the place of the sample only where it reads
/// that sample of a tensor, and read other tensors of unknown size nowhere.
std::string GatherBody::checkSampleIndex(Operation *other, unsigned samples) {
  auto load = dyn_cast<tensor::ExtractOp>(other);
  for (auto [number, operand] : llvm::enumerate(other->getOperands())) {
    bool isSample = load && number == 1;
    // Where isLoop() does not look through a cast, the cast is the end.
    bool isCast =
        other->getNumResults() == 1 && isLoop(other->getResult(0), samples);
    if (isLoop(operand, samples) && !isSample && !isCast)
      return "its ids depend on the place of the sample in the batch, of which "
             "each device has a part";
    bool isPart = llvm::any_of(llvm::seq(op.getNumLoops()), [&](unsigned loop) {
      return isLoop(operand, loop);
    });
    if (isSample && !isPart && load.getTensor().getType().isDynamicDim(0))
      return "its ids may be those of another sample, which may be on another "
             "device: 'tensor.extract' reads '" +
             textOf(load.getTensor().getType()) +
             "' at an index that is no loop";
  }
  return "";
}

/// Why the ids of a sample depend on more than the sample; empty if they do
/// not. A batch of known size is on one device.
std::string GatherBody::checkSample() {
  auto type = cast<RankedTensorType>(op.getResultTypes()[0]);
  auto first =
      dyn_cast<AffineDimExpr>(op.getIndexingMapsArray().back().getResult(0));
  if (type.getRank() < 2 || !type.isDynamicDim(0) || !first)
    return "";
  unsigned samples = first.getPosition();
  if (isLoop(rowIndex, samples))
    return "its ids are the places of the samples in the batch, of which each "
           "device has a part";
  for (Operation *other : indexOps) {
    if (std::string reason = checkSampleIndex(other, samples); !reason.empty())
      return reason;
    for (Value operand : other->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument || argument.getOwner() != body)
        continue;
      AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
      for (auto [number, result] : llvm::enumerate(map.getResults()))
        if (result.isFunctionOfDim(samples) && (number > 0 || result != first))
          return "a sample must read its own ids: the index in dimension " +
                 std::to_string(number) + " of an operand is " + textOf(result);
    }
  }
  return "";
}

/// `map` over the loops without that of the columns.
AffineMap GatherBody::withoutColumn(AffineMap map) {
  SmallVector<AffineExpr> dims;
  MLIRContext *context = op.getContext();
  for (unsigned i = 0; i < map.getNumDims(); ++i)
    dims.push_back(i == column ? getAffineConstantExpr(0, context)
                               : getAffineDimExpr(i - (i > column), context));
  return map.replaceDimsAndSymbols(dims, {}, map.getNumDims() - 1, 0);
}

/// The input of which `argument` is the element, if it has one for each id.
std::optional<Value> GatherBody::operandOverIds(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != body ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return std::nullopt;
  AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
  if (map.isFunctionOfDim(column) || !withoutColumn(map).isIdentity())
    return std::nullopt;
  return op.getInputs()[argument.getArgNumber()];
}

/// The row indices by a generic of their own.
Maker GatherBody::computedIds() {
  return [*this](OpBuilder &b, Location loc) mutable -> Value {
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    SmallVector<BlockArgument> arguments;
    for (Operation *other : indexOps)
      for (Value operand : other->getOperands()) {
        auto argument = dyn_cast<BlockArgument>(operand);
        if (!argument || argument.getOwner() != body ||
            llvm::is_contained(arguments, argument))
          continue;
        arguments.push_back(argument);
        inputs.push_back(op.getInputs()[argument.getArgNumber()]);
        maps.push_back(
            withoutColumn(op.getIndexingMapsArray()[argument.getArgNumber()]));
      }
    SmallVector<OpFoldResult> sizes;
    for (auto [number, range] :
         llvm::enumerate(cast<linalg::LinalgOp>(op.getOperation())
                             .createLoopRanges(b, loc)))
      if (number != column)
        sizes.push_back(range.size);
    maps.push_back(b.getMultiDimIdentityMap(sizes.size()));
    Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getI64Type());
    SmallVector<utils::IteratorType> loops(sizes.size(),
                                           utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, loc, empty.getType(), inputs, empty, maps, loops,
        [&](OpBuilder &inner, Location at, ValueRange elements) {
          IRMapping mapping;
          for (auto [argument, element] :
               llvm::zip(arguments, elements.drop_back()))
            mapping.map(argument, element);
          for (Operation *other : indexOps) {
            auto loop = dyn_cast<linalg::IndexOp>(other);
            if (!loop) {
              inner.clone(*other, mapping);
              continue;
            }
            uint64_t dim = loop.getDim() - (loop.getDim() > column);
            mapping.map(loop.getResult(),
                        linalg::IndexOp::create(inner, at, dim).getResult());
          }
          Value index = mapping.lookup(rowIndex);
          linalg::YieldOp::create(
              inner, at,
              arith::IndexCastOp::create(inner, at, inner.getI64Type(), index)
                  .getResult());
        });
    return generic.getResult(0);
  };
}

Maker GatherBody::makeIds() {
  std::optional<Value> ids = operandOverIds(beforeCasts(rowIndex));
  if (ids && isIdType(cast<ShapedType>(ids->getType()).getElementType()))
    return idsFrom(*ids);
  return computedIds();
}

std::optional<FoundLookup> GatherBody::findLoops() {
  SmallVector<utils::IteratorType> loops = op.getIteratorTypesArray();
  for (auto [number, loop] : llvm::enumerate(loops)) {
    if (loop != utils::IteratorType::reduction)
      continue;
    if (bagLoop)
      return miss("it adds over several loops; expected one, over the ids of "
                  "a bag");
    bagLoop = number;
  }
  Value element = body->getTerminator()->getOperand(0);
  Value before = body->getArguments().back();
  if (bagLoop) {
    element = addedTo(element, before);
    if (!element)
      return miss("it reduces rows otherwise than by 'arith.addf'");
    if (!element.getType().isF32())
      return miss("it adds up in " + textOf(element.getType()) +
                  "; lookups add in f32 and round once");
    if (splatOf(op.getOutputs()[0]) != 0.0)
      return miss("its sums do not begin at zero");
  } else if (!before.use_empty()) {
    return miss("its result depends on the tensor that it writes to");
  }
  if (auto product = element.getDefiningOp<arith::MulFOp>();
      product && bagLoop) {
    bool isLeft = operandOverIds(product.getLhs()).has_value();
    weight = isLeft ? product.getLhs() : product.getRhs();
    element = isLeft ? product.getRhs() : product.getLhs();
  }
  if (auto wider = element.getDefiningOp<arith::ExtFOp>())
    element = wider.getIn();
  if (element != extract.getResult())
    return miss("its body computes more than an element of a row, or its sum; "
                "keep the rest in an op of its own");
  return FoundLookup();
}

std::optional<FoundLookup> GatherBody::find() {
  if (op.getNumResults() != 1 || !readsTable())
    return std::nullopt;
  RankedTensorType table = typeBeforeCasts(extract.getTensor());
  if (table.getRank() != 2)
    return miss("the table must have two dimensions, rows and columns, got: " +
                textOf(table));
  auto columnIndex = extract.getIndices()[1].getDefiningOp<linalg::IndexOp>();
  if (!columnIndex)
    return miss("the column of an element must be a loop of its own: lookups "
                "select whole rows by an index in dimension 0");
  column = columnIndex.getDim();
  rowIndex = extract.getIndices()[0];
  std::optional<FoundLookup> found = findLoops();
  if (!found)
    return std::nullopt;
  if (std::string reason = collectIndex(); !reason.empty())
    return miss(reason);
  if (std::string reason = checkSample(); !reason.empty())
    return miss(reason);
  if (std::string reason = checkOtherOps(); !reason.empty())
    return miss(reason);

  // The result has the loops over ids in their order, then the columns.
  unsigned numLoops = op.getNumLoops();
  SmallVector<AffineExpr> expected;
  for (unsigned i = 0; i < numLoops; ++i)
    if (i != column && i != bagLoop)
      expected.push_back(getAffineDimExpr(i, op.getContext()));
  expected.push_back(getAffineDimExpr(column, op.getContext()));
  unsigned lastIdLoop = column == numLoops - 1 ? numLoops - 2 : numLoops - 1;
  if ((bagLoop && (numLoops < 3 || *bagLoop != lastIdLoop)) ||
      op.getIndexingMapsArray().back() !=
          AffineMap::get(numLoops, 0, expected, op.getContext()))
    return miss("the dimensions of the result must be those of the ids, the "
                "bag's last, and then the columns");
  auto type = cast<RankedTensorType>(op.getResultTypes()[0]);
  if (type.getShape().back() != table.getDimSize(1))
    return miss("it must take all " + std::to_string(table.getDimSize(1)) +
                " columns of a row, got: " + textOf(type));

  found->op = op;
  found->result = op.getResult(0);
  found->type = type;
  found->table = &extract.getTensorMutable();
  found->ids = makeIds();
  found->idsSource = rowIndex;
  if (std::optional<Value> ids = operandOverIds(beforeCasts(rowIndex)))
    found->idsSource = *ids;
  if (bagLoop) {
    found->pooling = Pooling::Sum;
    found->bagRank = 1;
  }
  if (weight) {
    std::optional<Value> weights = operandOverIds(weight);
    if (!weights || !weight.getType().isF32())
      return miss("the weights of a sum must be an operand of f32 with one "
                  "for each id");
    found->weights = there(*weights);
    found->weightsSource = *weights;
  }
  found->consumed = {op};
  return found;
}

std::optional<FoundLookup>
neuroshard::raising::findLinalgGather(Operation *op, Misses &misses) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !generic.hasPureTensorSemantics())
    return std::nullopt;
  return GatherBody(generic, misses).find();
}
