//===- Pooling.cpp - Rows that become sums and means ----------------------===//

#include "Pooling.h"
#include "Found/Values.h"
#include "RowSteps.h"
#include "TableSources.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

namespace {
/// A lookup with steps behind it. Rows times weights are no lookup yet.
struct Grown {
  FoundLookup found;
  bool isLookup = true;
};

class Grower {
public:
  Grower(Misses &misses, std::vector<FoundLookup> &lookups)
      : misses(misses), lookups(lookups) {}

  /// Adds the lookups for all uses of the result. Gives whether they stand for
  /// all of them.
  bool grow(const Grown &grown);

private:
  std::optional<Grown> step(const Grown &grown, OpOperand &use);
  bool applyReshape(FoundLookup &next, Operation *op);
  bool applySum(Grown &next, const RowStep &step, Operation *op);
  bool applyDivide(FoundLookup &next, double divisor, Operation *op);

  Misses &misses;
  std::vector<FoundLookup> &lookups;
};
} // namespace

static RowStep stepOf(OpOperand &use) {
  for (auto question : {linalgStep, torchStep, stableHloStep})
    if (RowStep step = question(use);
        step.kind != RowStep::Other || !step.reason.empty())
      return step;
  return {};
}

/// Rows of ids in one dimension whose ids get the dimensions of the result.
bool Grower::applyReshape(FoundLookup &next, Operation *op) {
  auto expand = dyn_cast<tensor::ExpandShapeOp>(op);
  if (!expand || next.pooling != Pooling::None || next.weights ||
      next.type.getRank() < 2)
    return false;
  SmallVector<ReassociationIndices> groups = expand.getReassociationIndices();
  if (groups.back().size() != 1)
    return false;
  next.ids = [ids = next.ids, expand](OpBuilder &b,
                                      Location loc) mutable -> Value {
    Value flat = ids(b, loc);
    // The rows may have been cast to a type with other known sizes.
    auto before = RankedTensorType::get(
        expand.getSrcType().getShape().drop_back(),
        cast<RankedTensorType>(flat.getType()).getElementType());
    if (flat.getType() != before)
      flat = tensor::CastOp::create(b, loc, before, flat);
    auto rows = cast<RankedTensorType>(expand.getResult().getType());
    auto type = RankedTensorType::get(
        rows.getShape().drop_back(),
        cast<RankedTensorType>(flat.getType()).getElementType());
    SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
    sizes.pop_back();
    SmallVector<ReassociationIndices> idGroups =
        expand.getReassociationIndices();
    idGroups.pop_back();
    return tensor::ExpandShapeOp::create(b, loc, type, flat, idGroups, sizes);
  };
  next.idsSource = expand.getResult();
  return true;
}

bool Grower::applySum(Grown &next, const RowStep &step, Operation *op) {
  FoundLookup &found = next.found;
  int64_t idRank = found.type.getRank() - 1;
  if (found.pooling != Pooling::None)
    return false;
  if (step.dim != idRank - 1 || idRank < 2) {
    misses.pooling(op, "a bag is the last dimension of ids that have two or "
                       "more; the sum is over dimension " +
                           std::to_string(step.dim) + " of " +
                           textOf(found.type));
    return false;
  }
  if (!found.type.getElementType().isF32()) {
    misses.pooling(op, "it adds up in " + textOf(found.type.getElementType()) +
                           "; lookups add in f32 and round once");
    return false;
  }
  if (found.paddingIdx) {
    misses.pooling(op, "its rows have a padding_idx, whose row is added up; a "
                       "sum leaves it out");
    return false;
  }
  if (step.weights) {
    if (found.weights)
      return false;
    found.weights = step.weights;
    found.weightsSource = step.weightsSource;
  }
  found.pooling = Pooling::Sum;
  found.bagRank = 1;
  next.isLookup = true;
  return true;
}

bool Grower::applyDivide(FoundLookup &next, double divisor, Operation *op) {
  if (next.pooling != Pooling::Sum || next.offsets)
    return false;
  if (next.weights) {
    misses.pooling(op, "a mean has no weights; the sum is raised and divided");
    return false;
  }
  int64_t size = next.bagSize;
  if (ShapedType::isDynamic(size) || size == 0 ||
      static_cast<double>(size) != divisor) {
    misses.pooling(op, "a mean divides by the number of ids of each bag, " +
                           (ShapedType::isDynamic(size)
                                ? std::string("which is not known")
                                : std::to_string(size)) +
                           "; the sum is raised and divided");
    return false;
  }
  next.pooling = Pooling::Mean;
  return true;
}

/// The type of the result, which is checked: its op need not be registered.
static bool setType(FoundLookup &found, const RowStep &step,
                    RankedTensorType type) {
  if (!type)
    return false;
  SmallVector<int64_t> expected(found.type.getShape());
  if (step.kind == RowStep::Sum || step.kind == RowStep::Mean)
    expected.erase(expected.begin() + step.dim);
  bool sameElement = type.getElementType() == found.type.getElementType();
  if (step.kind != RowStep::Reshape &&
      (!fit(expected, type.getShape()) ||
       (!sameElement && step.kind != RowStep::Same)))
    return false;
  // Dialects that infer types do not always know the columns.
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = expected.back();
  found.type = RankedTensorType::get(shape, type.getElementType());
  return true;
}

std::optional<Grown> Grower::step(const Grown &grown, OpOperand &use) {
  Operation *op = use.getOwner();
  if (op->getNumResults() != 1 || op->getBlock() != grown.found.op->getBlock())
    return std::nullopt;
  RowStep step = stepOf(use);
  Grown next = grown;
  FoundLookup &found = next.found;
  switch (step.kind) {
  case RowStep::Other:
    if (!step.reason.empty())
      misses.pooling(op, step.reason);
    return std::nullopt;
  case RowStep::Same:
    break;
  case RowStep::Reshape:
    if (!applyReshape(found, op))
      return std::nullopt;
    break;
  case RowStep::Weigh:
    if (found.pooling != Pooling::None || found.weights)
      return std::nullopt;
    found.weights = step.weights;
    found.weightsSource = step.weightsSource;
    next.isLookup = false;
    break;
  case RowStep::Sum:
  case RowStep::Mean:
    found.bagSize = found.type.getRank() < 2
                        ? ShapedType::kDynamic
                        : found.type.getDimSize(found.type.getRank() - 2);
    if (!applySum(next, step, op))
      return std::nullopt;
    if (step.kind == RowStep::Mean) {
      if (found.weights)
        return std::nullopt;
      if (ShapedType::isDynamic(found.bagSize) || found.bagSize == 0) {
        misses.pooling(
            op,
            "it is a mean over bags of " +
                std::string(found.bagSize == 0 ? "no ids" : "unknown size") +
                ", which is no number for an empty bag; the "
                "mean of a lookup is zero there");
        return std::nullopt;
      }
      found.pooling = Pooling::Mean;
    }
    break;
  case RowStep::Divide:
    if (!applyDivide(found, step.divisor, op))
      return std::nullopt;
    break;
  }
  found.op = op;
  found.result = op->getResult(0);
  if (!setType(found, step, builtinTensor(found.result.getType())))
    return std::nullopt;
  found.consumed.insert(found.consumed.begin(), op);
  llvm::append_range(found.consumed, step.consumed);
  return next;
}

bool Grower::grow(const Grown &grown) {
  bool all = true;
  for (OpOperand &use : grown.found.result.getUses()) {
    std::optional<Grown> next = step(grown, use);
    all &= next && grow(*next);
  }
  bool unused = grown.found.result.use_empty();
  if (all && !unused)
    return true;
  if (grown.isLookup)
    lookups.push_back(grown.found);
  return grown.isLookup;
}

void neuroshard::raising::findPooled(const FoundLookup &found, Misses &misses,
                                     std::vector<FoundLookup> &lookups) {
  Grower(misses, lookups).grow({found});
}
