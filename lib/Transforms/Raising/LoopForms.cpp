//===- LoopForms.cpp - Rows gathered by loops -----------------------------===//

#include "LoopForms.h"
#include "Found/Elements.h"
#include "Found/Offsets.h"
#include "Found/Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

namespace {

/// A loop that counts from 0 in steps of 1, or from `lower`, and carries one
/// tensor.
struct Loop {
  Operation *op = nullptr;
  Block *body = nullptr;
  Value counter, lower, init, carried;
  OpFoldResult upper;
  /// What an iteration carries on: of `scf.for` a value, of `scf.forall` the op
  /// that inserts it.
  Value next;
  Operation *insert = nullptr;
};

/// How an element of the ids is read in the loop.
struct IdRead {
  Value ids;
  SmallVector<Value> indices;
};

class LoopBody {
public:
  LoopBody(Operation *op, Misses &misses, bool validInputs)
      : op(op), misses(misses), validInputs(validInputs) {}

  std::optional<FoundLookup> find();

private:
  std::nullopt_t miss(std::string reason) {
    return misses.lookup(op, std::move(reason), culprit);
  }
  /// Gives `reason`, of which `inner` is the cause.
  std::string blame(Operation *inner, std::string reason) {
    culprit = inner;
    return reason;
  }
  std::string blame(Value value, std::string reason) {
    return blame(value.getDefiningOp(), std::move(reason));
  }
  bool isTableRow(Value value);
  std::optional<Loop> read(Operation *op);
  bool readsTable();
  std::string checkWholeRow();
  std::string checkInsert(const Loop &samples, Value &row);
  std::string findBag(const Loop &samples, Value row, FoundLookup &found);
  std::string findSum(const Loop &bag, FoundLookup &found);
  std::string findIds(const Loop &samples, const Loop *bag, FoundLookup &found);
  std::optional<IdRead> readId();
  bool isMean(Value divisor, const Loop &bag);
  bool isOutside(Value value) {
    return !op->isAncestor(value.getParentBlock()->getParentOp());
  }

  Operation *op;
  Misses &misses;
  bool validInputs;
  tensor::ExtractSliceOp extract;
  Value weight;
  /// The op inside the loop that is the cause of a miss, if it is one op.
  Operation *culprit = nullptr;
};

} // namespace

std::optional<Loop> LoopBody::read(Operation *op) {
  Loop loop;
  loop.op = op;
  if (auto loopOp = dyn_cast<scf::ForOp>(op)) {
    if (loopOp.getNumRegionIterArgs() != 1 || constantOf(loopOp.getStep()) != 1)
      return std::nullopt;
    loop.body = loopOp.getBody();
    loop.counter = loopOp.getInductionVar();
    loop.lower = loopOp.getLowerBound();
    loop.upper = getAsOpFoldResult(loopOp.getUpperBound());
    loop.init = loopOp.getInitArgs()[0];
    loop.carried = loopOp.getRegionIterArg(0);
    loop.next = loop.body->getTerminator()->getOperand(0);
    loop.insert = loop.next.getDefiningOp<tensor::InsertSliceOp>();
    return loop;
  }
  auto loopOp = cast<scf::ForallOp>(op);
  SmallVector<Operation *> inserts;
  for (Operation &inner : loopOp.getTerminator().getYieldingOps())
    inserts.push_back(&inner);
  if (loopOp.getRank() != 1 || loopOp.getOutputs().size() != 1 ||
      inserts.size() != 1 || !loopOp.isNormalized())
    return std::nullopt;
  loop.body = loopOp.getBody();
  loop.counter = loopOp.getInductionVars()[0];
  loop.upper = loopOp.getMixedUpperBound()[0];
  loop.init = loopOp.getOutputs()[0];
  loop.carried = loopOp.getRegionIterArgs()[0];
  loop.insert = inserts[0];
  return loop;
}

/// A slice of a tensor of floats from outside, at an index that is loaded.
bool LoopBody::readsTable() {
  op->walk([&](tensor::ExtractSliceOp slice) {
    RankedTensorType type = slice.getSourceType();
    if (!isa<FloatType>(type.getElementType()) || type.getRank() != 2 ||
        !isOutside(slice.getSource()))
      return;
    for (OpFoldResult offset : slice.getMixedOffsets())
      if (auto value = dyn_cast<Value>(offset))
        if (beforeCasts(value).getDefiningOp<tensor::ExtractOp>())
          extract = slice;
  });
  return static_cast<bool>(extract);
}

static bool areRow(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                   ArrayRef<OpFoldResult> strides, int64_t dim) {
  return offsets.size() == 2 && getConstantIntValue(offsets[1]) == 0 &&
         getConstantIntValue(sizes[0]) == 1 &&
         getConstantIntValue(sizes[1]) == dim &&
         llvm::all_of(strides, [](OpFoldResult stride) {
           return getConstantIntValue(stride) == 1;
         });
}

std::string LoopBody::checkWholeRow() {
  int64_t dim = typeBeforeCasts(extract.getSource()).getDimSize(1);
  if (areRow(extract.getMixedOffsets(), extract.getMixedSizes(),
             extract.getMixedStrides(), dim))
    return "";
  return blame(extract.getOperation(),
               "its slices of the table must be whole rows: offsets [id, 0], "
               "sizes [1, " +
                   std::to_string(dim) + "], strides [1, 1]");
}

/// Whether two sizes are the same for certain.
static bool sameSize(OpFoldResult a, OpFoldResult b) {
  if (isEqualConstantIntOrValue(a, b))
    return true;
  auto dimOf = [](OpFoldResult size) {
    auto value = dyn_cast<Value>(size);
    return value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  };
  tensor::DimOp one = dimOf(a), other = dimOf(b);
  return one && other && one.getSource() == other.getSource() &&
         one.getConstantIndex() &&
         one.getConstantIndex() == other.getConstantIndex();
}

/// The size of dimension 0 of a tensor, where it can be seen how it was made.
static OpFoldResult numRows(Value tensor, Builder &builder) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(0))
    return builder.getIndexAttr(type.getDimSize(0));
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return numRows(fill.getOutputs()[0], builder);
  if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes()[0];
  if (auto splat = tensor.getDefiningOp<tensor::SplatOp>())
    return splat.getDynamicSizes()[0];
  return {};
}

/// The last op of an iteration must insert a row at the counter, and the loop
/// write all rows.
std::string LoopBody::checkInsert(const Loop &samples, Value &row) {
  std::string rule = "each iteration must insert one row at its counter";
  if (!samples.insert)
    return rule;
  culprit = samples.insert;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  auto readSlice = [&](auto slice) {
    offsets = slice.getMixedOffsets();
    sizes = slice.getMixedSizes();
    strides = slice.getMixedStrides();
    row = slice.getSource();
    return slice.getDest();
  };
  Value into;
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(samples.insert))
    into = readSlice(slice);
  else if (auto slice = dyn_cast<tensor::ParallelInsertSliceOp>(samples.insert))
    into = readSlice(slice);
  int64_t dim = extract.getSourceType().getDimSize(1);
  if (!into || into != samples.carried ||
      !areRow(offsets, sizes, strides, dim) ||
      dyn_cast<Value>(offsets[0]) != samples.counter)
    return rule;
  culprit = nullptr;
  if (samples.lower && constantOf(samples.lower) != 0)
    return "its counter must begin at 0";
  auto type = cast<RankedTensorType>(samples.init.getType());
  Builder builder(op->getContext());
  OpFoldResult rows = numRows(samples.init, builder);
  if (type.getRank() != 2 || type.getDimSize(1) != dim || !rows ||
      !sameSize(rows, samples.upper))
    return "it must write all rows of its result, whose number must be that of "
           "the iterations; got: " +
           textOf(type);
  return "";
}

std::optional<IdRead> LoopBody::readId() {
  auto row = dyn_cast<Value>(extract.getMixedOffsets()[0]);
  auto load =
      row ? beforeCasts(row).getDefiningOp<tensor::ExtractOp>() : nullptr;
  if (!load || !isIdType(load.getTensor().getType().getElementType()) ||
      !isOutside(load.getTensor()))
    return std::nullopt;
  return IdRead{load.getTensor(), SmallVector<Value>(load.getIndices())};
}

static constexpr llvm::StringLiteral kTooFew =
    "it counts further than there are ids or weights";

/// Whether a tensor has the leading `sizes`, as far as they are known.
static bool hasPart(Value tensor, ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return llvm::all_of(llvm::enumerate(sizes), [&](auto size) {
    std::optional<int64_t> known = getConstantIntValue(size.value());
    return !known || type.isDynamicDim(size.index()) ||
           *known <= type.getDimSize(size.index());
  });
}

/// The leading `sizes` of a tensor; the tensor itself where that is all of it.
static Maker leadingPart(Value tensor, SmallVector<OpFoldResult> sizes) {
  return [tensor, sizes](OpBuilder &b, Location loc) -> Value {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<OpFoldResult> wanted, begins(sizes.size(), b.getIndexAttr(0)),
        steps(sizes.size(), b.getIndexAttr(1));
    bool whole = true;
    for (auto [number, extent] : llvm::enumerate(sizes)) {
      wanted.push_back(extent);
      auto value = dyn_cast<Value>(extent);
      auto dim = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
      whole &= (dim && dim.getSource() == tensor &&
                dim.getConstantIndex() == static_cast<int64_t>(number)) ||
               (!type.isDynamicDim(number) &&
                getConstantIntValue(extent) == type.getDimSize(number));
    }
    if (whole)
      return tensor;
    return tensor::ExtractSliceOp::create(b, loc, tensor, begins, wanted,
                                          steps);
  };
}

static Maker asIds(Maker maker) {
  return [maker](OpBuilder &b, Location loc) {
    return idsFrom(maker(b, loc))(b, loc);
  };
}

/// The element `tensor[counter + add]`, before casts.
static Value tensorReadAt(Value element, Value counter, int64_t add) {
  auto load = beforeCasts(element).getDefiningOp<tensor::ExtractOp>();
  if (!load || load.getIndices().size() != 1)
    return {};
  Value index = load.getIndices()[0];
  if (add == 0)
    return index == counter ? load.getTensor() : Value();
  auto sum = index.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return {};
  bool left = sum.getLhs() == counter && constantOf(sum.getRhs()) == add;
  bool right = sum.getRhs() == counter && constantOf(sum.getLhs()) == add;
  return left || right ? load.getTensor() : Value();
}

std::string LoopBody::findIds(const Loop &samples, const Loop *bag,
                              FoundLookup &found) {
  std::optional<IdRead> read = readId();
  if (!read)
    return blame(extract.getOperation(),
                 "the row must be selected by an element of a tensor "
                 "of i32, i64 or index from outside the loop");
  Value weights;
  if (weight) {
    auto load = weight.getDefiningOp<tensor::ExtractOp>();
    if (!load || !weight.getType().isF32() ||
        !llvm::equal(load.getIndices(), read->indices) ||
        !isOutside(load.getTensor()))
      return blame(weight, "the weight of a row must be an element of a tensor "
                           "of f32 at the place of its id");
    weights = load.getTensor();
  }
  found.idsSource = read->ids;
  found.weightsSource = weights;
  if (!bag) {
    if (read->indices.size() != 1 || read->indices[0] != samples.counter)
      return "sample i must have the id at place i";
    if (!hasPart(read->ids, {samples.upper}))
      return kTooFew.str();
    found.ids = asIds(leadingPart(read->ids, {samples.upper}));
    return "";
  }
  auto upper = dyn_cast<Value>(bag->upper);
  if (read->indices.size() == 2 && read->indices[0] == samples.counter &&
      read->indices[1] == bag->counter && constantOf(bag->lower) == 0 &&
      (!upper || isOutside(upper))) {
    SmallVector<OpFoldResult> sizes = {samples.upper, bag->upper};
    if (!hasPart(read->ids, sizes) || (weights && !hasPart(weights, sizes)))
      return kTooFew.str();
    found.ids = asIds(leadingPart(read->ids, sizes));
    if (weights)
      found.weights = leadingPart(weights, sizes);
    found.bagRank = 1;
    found.bagSize =
        getConstantIntValue(bag->upper).value_or(ShapedType::kDynamic);
    return "";
  }
  Value offsets = tensorReadAt(bag->lower, samples.counter, 0);
  if (!offsets || !upper ||
      offsets != tensorReadAt(upper, samples.counter, 1) ||
      read->indices.size() != 1 || read->indices[0] != bag->counter ||
      !isOutside(offsets))
    return "a bag must be a row of the ids from its begin, or the ids from "
           "offsets[i] to offsets[i + 1]";
  if (!isIdType(cast<ShapedType>(offsets.getType()).getElementType()))
    return "offsets must be i32, i64 or index";
  Maker count = [size = samples.upper](OpBuilder &b, Location loc) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  useOffsets(found, read->ids, idsFrom(offsets), count, weights, validInputs);
  found.offsetsSource = offsets;
  return "";
}

/// Whether `value` has the elements of the row of the table, also extended to
/// f32: lookups add rows of f16 and bf16 so.
bool LoopBody::isTableRow(Value value) {
  value = elementsOf(value);
  auto wider = value.getDefiningOp<arith::ExtFOp>();
  if (wider && getElementTypeOrSelf(value.getType()).isF32())
    value = elementsOf(wider.getIn());
  return value == extract.getResult();
}

/// The loop over the ids of a bag must add a row, or a row times its weight, to
/// what it carries.
std::string LoopBody::findSum(const Loop &bag, FoundLookup &found) {
  auto sum = operandsOf<arith::AddFOp, linalg::AddOp>(bag.next);
  if (!sum || (sum->first != bag.carried && sum->second != bag.carried))
    return blame(bag.next,
                 "what a bag carries on must be its sum and a row, added by "
                 "'arith.addf', 'linalg.add' or a 'linalg.generic' of the "
                 "elements in their order");
  Value term = sum->first == bag.carried ? sum->second : sum->first;
  if (splatOf(bag.init) != 0.0)
    return blame(bag.op, "the sum of a bag must begin at zero");
  if (!cast<ShapedType>(bag.init.getType()).getElementType().isF32())
    return blame(
        bag.next,
        "it adds up in " +
            textOf(cast<ShapedType>(bag.init.getType()).getElementType()) +
            "; lookups add in f32 and round once");
  if (auto product = operandsOf<arith::MulFOp, linalg::MulOp>(term)) {
    auto [row, factor] = *product;
    if (!isTableRow(row))
      std::swap(row, factor);
    weight = repeated(factor);
    if (!weight)
      return blame(term,
                   "a row is multiplied by something else than a weight of its "
                   "id");
    term = row;
  }
  if (!isTableRow(term))
    return blame(term, "each iteration over a bag must add one row of the "
                       "table, as it is or extended to f32");
  found.pooling = Pooling::Sum;
  return "";
}

/// Whether `divisor` is the number of ids of the bag, at least 1.
bool LoopBody::isMean(Value divisor, const Loop &bag) {
  Value count = repeated(divisor);
  std::optional<double> known = splatOf(divisor);
  if (!count || weight)
    return false;
  if (known)
    return constantOf(bag.lower) == 0 &&
           getConstantIntValue(bag.upper).value_or(0) >= 1 &&
           static_cast<double>(*getConstantIntValue(bag.upper)) == *known;
  bool guarded = false;
  if (auto most = count.getDefiningOp<arith::MaximumFOp>()) {
    guarded = splatOf(most.getRhs()) == 1.0;
    count = most.getLhs();
  }
  auto asFloat = count.getDefiningOp<arith::SIToFPOp>();
  if (!asFloat)
    return false;
  Value number = beforeCasts(asFloat.getIn());
  if (auto narrow = number.getDefiningOp<arith::IndexCastOp>())
    number = narrow.getIn();
  if (auto most = number.getDefiningOp<arith::MaxSIOp>()) {
    guarded |= constantOf(most.getRhs()) == 1;
    number = beforeCasts(most.getLhs());
  }
  auto difference = number.getDefiningOp<arith::SubIOp>();
  auto upper = dyn_cast<Value>(bag.upper);
  return guarded && difference && upper &&
         beforeCasts(difference.getLhs()) == beforeCasts(upper) &&
         beforeCasts(difference.getRhs()) == beforeCasts(bag.lower);
}

std::string LoopBody::findBag(const Loop &samples, Value row,
                              FoundLookup &found) {
  Value divisor, mean = row;
  if (auto quotient = operandsOf<arith::DivFOp, linalg::DivOp>(row)) {
    row = quotient->first;
    divisor = quotient->second;
  }
  if (isTableRow(row) && !divisor)
    return findIds(samples, nullptr, found);
  auto inner = row.getDefiningOp<scf::ForOp>();
  std::optional<Loop> bag = inner ? read(inner) : std::nullopt;
  if (!bag)
    return blame(samples.insert,
                 "each iteration must insert a row of the table, or what a "
                 "loop over the ids of a bag has added up");
  if (std::string reason = findSum(*bag, found); !reason.empty())
    return reason;
  if (divisor) {
    if (!isMean(divisor, *bag))
      return blame(elementsOf(mean),
                   "a mean divides by the number of ids of the bag and by 1 "
                   "where there are none ('arith.maxsi', 'arith.maximumf'), "
                   "without weights: the mean of an empty bag is zero");
    found.pooling = Pooling::Mean;
  }
  return findIds(samples, &*bag, found);
}

std::optional<FoundLookup> LoopBody::find() {
  if (!readsTable())
    return std::nullopt;
  std::optional<Loop> samples = read(op);
  if (!samples)
    return miss("a loop over samples counts in steps of 1 and carries one "
                "tensor, the result");
  WalkResult others = op->walk([&](Operation *inner) {
    bool known = isa<scf::ForOp, scf::ForallOp, scf::InParallelOp,
                     tensor::ParallelInsertSliceOp>(inner) ||
                 inner->hasTrait<OpTrait::IsTerminator>() || isPure(inner) ||
                 isa<linalg::LinalgOp>(inner);
    if (known)
      return WalkResult::advance();
    culprit = inner;
    return WalkResult::interrupt();
  });
  if (others.wasInterrupted())
    return miss("an iteration has another effect than its row");
  if (std::string reason = checkWholeRow(); !reason.empty())
    return miss(reason);
  Value row;
  if (std::string reason = checkInsert(*samples, row); !reason.empty())
    return miss(reason);
  FoundLookup found;
  if (std::string reason = findBag(*samples, row, found); !reason.empty())
    return miss(reason);
  found.op = op;
  found.result = op->getResult(0);
  // The loop may take a part of the ids that another lookup takes all of.
  found.idsName = found.idsSource;
  found.idsSource = found.result;
  found.type = cast<RankedTensorType>(found.result.getType());
  found.table = &extract.getSourceMutable();
  found.consumed = {op};
  return found;
}

std::optional<FoundLookup>
neuroshard::raising::findLoop(Operation *op, Misses &misses, bool validInputs) {
  if (!isa<scf::ForOp, scf::ForallOp>(op) ||
      op->getParentOfType<scf::ForOp>() || op->getParentOfType<scf::ForallOp>())
    return std::nullopt;
  return LoopBody(op, misses, validInputs).find();
}
