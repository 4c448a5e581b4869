//===- BatchReductions.cpp - Reductions over the samples ------------------===//

#include "BatchReductions.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace neuroshard;

namespace {

/// Follows the dimensions that have the samples from values to values.
class SampleDims {
public:
  /// Says that `dim` of `value` has the samples.
  void add(Value value, unsigned dim);
  /// Follows all that was added; gives the first op that reduces over samples.
  Operation *follow();

private:
  struct Found {
    Value value;
    unsigned dim;
  };
  Operation *followInto(OpOperand &use, unsigned dim);
  Operation *followInto(linalg::LinalgOp op, OpOperand &use, unsigned dim);
  void followInto(tensor::InsertSliceOp op, OpOperand &use, unsigned dim);
  void followReturn(OpOperand &use, unsigned dim);
  ArrayRef<func::CallOp> callsOf(func::FuncOp function);

  /// Looked for once, as that goes through the module.
  llvm::DenseMap<func::FuncOp, SmallVector<func::CallOp>> calls;
  llvm::DenseSet<std::pair<Value, unsigned>> known;
  SmallVector<Found> open;
};

} // namespace

void SampleDims::add(Value value, unsigned dim) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (type && dim < type.getRank() && known.insert({value, dim}).second)
    open.push_back({value, dim});
}

/// The only dimension of a group that has an unknown size, as that of the
/// samples is.
static std::optional<unsigned> dynamicDim(RankedTensorType type,
                                          const ReassociationIndices &group) {
  std::optional<unsigned> found;
  for (int64_t dim : group) {
    if (!type.isDynamicDim(dim))
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

static unsigned groupOfDim(ArrayRef<ReassociationIndices> groups,
                           unsigned dim) {
  for (auto [number, group] : llvm::enumerate(groups))
    if (llvm::is_contained(group, static_cast<int64_t>(dim)))
      return number;
  return groups.size();
}

/// The dimension of the smaller side of a slice, or none if it is dropped.
static std::optional<unsigned> withoutDropped(const llvm::SmallBitVector &drops,
                                              unsigned dim) {
  if (drops.test(dim))
    return std::nullopt;
  unsigned kept = 0;
  for (unsigned i = 0; i < dim; ++i)
    kept += !drops.test(i);
  return kept;
}

Operation *SampleDims::followInto(linalg::LinalgOp op, OpOperand &use,
                                  unsigned dim) {
  auto loop =
      dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(&use).getResult(dim));
  if (!loop)
    return nullptr;
  if (op.getIteratorTypesArray()[loop.getPosition()] ==
      utils::IteratorType::reduction)
    return op->use_empty() ? nullptr : op.getOperation();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isFunctionOfDim(loop.getPosition()) || op->getNumResults() == 0)
      continue;
    for (auto [number, expr] : llvm::enumerate(map.getResults()))
      if (expr == loop)
        add(op.getTiedOpResult(&init), number);
  }
  return nullptr;
}

void SampleDims::followInto(tensor::InsertSliceOp op, OpOperand &use,
                            unsigned dim) {
  if (use.get() == op.getDest())
    return add(op.getResult(), dim);
  for (unsigned to = 0; to < op.getDestType().getRank(); ++to)
    if (withoutDropped(op.getDroppedDims(), to) == dim)
      add(op.getResult(), to);
}

/// What a function returns is what its callers get.
void SampleDims::followReturn(OpOperand &use, unsigned dim) {
  auto function = use.getOwner()->getParentOfType<func::FuncOp>();
  for (func::CallOp call : callsOf(function))
    add(call.getResult(use.getOperandNumber()), dim);
}

ArrayRef<func::CallOp> SampleDims::callsOf(func::FuncOp function) {
  auto [found, isNew] = calls.try_emplace(function);
  if (isNew)
    found->second = neuroshard::callsOf(function);
  return found->second;
}

SmallVector<func::CallOp> neuroshard::callsOf(func::FuncOp function) {
  SmallVector<func::CallOp> calls;
  if (auto uses = SymbolTable::getSymbolUses(function, function->getParentOp()))
    for (SymbolTable::SymbolUse use : *uses)
      if (auto call = dyn_cast<func::CallOp>(use.getUser()))
        calls.push_back(call);
  return calls;
}

Operation *SampleDims::followInto(OpOperand &use, unsigned dim) {
  Operation *op = use.getOwner();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return followInto(linalgOp, use, dim);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    if (softmax.getDimension() == dim && use.get() == softmax.getInput())
      return op;
    for (Value result : softmax.getResult())
      add(result, dim);
  } else if (OpTrait::hasElementwiseMappableTraits(op) ||
             isa<tensor::CastOp, tensor::PadOp>(op)) {
    for (Value result : op->getResults())
      add(result, dim);
  } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    if (concat.getDim() != dim)
      add(concat.getResult(), dim);
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    if (auto samples = dynamicDim(expand.getResultType(),
                                  expand.getReassociationIndices()[dim]))
      add(expand.getResult(), *samples);
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    add(collapse.getResult(),
        groupOfDim(collapse.getReassociationIndices(), dim));
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (use.get() == slice.getSource())
      if (auto kept = withoutDropped(slice.getDroppedDims(), dim))
        add(slice.getResult(), *kept);
  } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    followInto(insert, use, dim);
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (callee && !callee.isExternal())
      add(callee.getArgument(use.getOperandNumber()), dim);
  } else if (isa<func::ReturnOp>(op)) {
    followReturn(use, dim);
  }
  return nullptr;
}

Operation *SampleDims::follow() {
  while (!open.empty()) {
    Found found = open.pop_back_val();
    for (OpOperand &use : found.value.getUses())
      if (Operation *reduction = followInto(use, found.dim))
        return reduction;
  }
  return nullptr;
}

Operation *neuroshard::findBatchReduction(ArrayRef<Value> values) {
  SampleDims dims;
  for (Value value : values)
    dims.add(value, 0);
  return dims.follow();
}
