//===- BatchReductions.cpp - Reductions over the samples ------------------===//

#include "BatchReductions.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// Gives the op if it reduces over the samples, or null.
Operation *SampleDims::followInto(OpOperand &use, unsigned dim) {
  Operation *op = use.getOwner();
  auto addResults = [&] {
    for (Value result : op->getResults())
      add(result, dim);
  };
  if (OpTrait::hasElementwiseMappableTraits(op)) {
    addResults();
    return nullptr;
  }
  Operation *reduction = nullptr;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](linalg::LinalgOp generic) {
        reduction = followInto(generic, use, dim);
      })
      .Case([&](linalg::SoftmaxOp softmax) {
        if (softmax.getDimension() == dim && use.get() == softmax.getInput())
          reduction = op;
        else
          addResults();
      })
      .Case<tensor::CastOp, tensor::PadOp>([&](auto) { addResults(); })
      .Case([&](tensor::ConcatOp concat) {
        if (concat.getDim() != dim)
          addResults();
      })
      .Case([&](tensor::ExpandShapeOp expand) {
        if (auto samples = dynamicDim(expand.getResultType(),
                                      expand.getReassociationIndices()[dim]))
          add(expand.getResult(), *samples);
      })
      .Case([&](tensor::CollapseShapeOp collapse) {
        add(collapse.getResult(),
            groupOfDim(collapse.getReassociationIndices(), dim));
      })
      .Case([&](tensor::ExtractSliceOp slice) {
        if (use.get() == slice.getSource())
          if (auto kept = withoutDropped(slice.getDroppedDims(), dim))
            add(slice.getResult(), *kept);
      })
      .Case([&](tensor::InsertSliceOp insert) { followInto(insert, use, dim); })
      .Case([&](func::CallOp call) {
        auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
            call, call.getCalleeAttr());
        if (callee && !callee.isExternal())
          add(callee.getArgument(use.getOperandNumber()), dim);
      })
      .Case([&](func::ReturnOp) { followReturn(use, dim); });
  return reduction;
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
