//===- KernelSpec.cpp - Names and checks of kernel specifications ---------===//
//
// The name of a kernel spells out everything its code depends on; constants
// appear as the bits of the double, so that no two values share a name.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

#include <cmath>

namespace neuroshard {

static bool readsOptimizer(KernelKind kind) {
  return kind == KernelKind::Update || kind == KernelKind::Reduce ||
         kind == KernelKind::Apply;
}

static std::optional<std::string> findProblem(const Optimizer &optimizer,
                                              ElementType weights) {
  for (double value :
       {optimizer.eps, optimizer.beta1, optimizer.beta2, optimizer.weightDecay,
        optimizer.l1Penalty, optimizer.l2Penalty, optimizer.eta,
        optimizer.adjustmentUb, optimizer.maxGradient})
    if (!std::isfinite(value) || value < 0)
      return "optimizer constants must be finite and not negative, got: " +
             std::to_string(value);
  if (std::optional<SettingError> error = settingError(optimizer, weights))
    return std::string(error->setting) + ": " + error->message;
  return std::nullopt;
}

std::optional<std::string> findProblem(const KernelSpec &spec) {
  if (spec.dim < 1)
    return "kernel dim must be at least 1, got: " + std::to_string(spec.dim);
  if (spec.kind == KernelKind::Lookup && spec.weighted && !spec.pooled)
    return "an unpooled lookup cannot be weighted";
  if (!readsOptimizer(spec.kind))
    return std::nullopt;
  if (isQuantized(spec.element))
    return "weights of " + std::string(toString(spec.element)) +
           " are not trained";
  if (auto problem = findProblem(spec.optimizer, spec.element))
    return problem;
  if (spec.tableDim != 0 && spec.tableDim < spec.dim)
    return "table dim must be at least the kernel dim " +
           std::to_string(spec.dim) + ", got: " + std::to_string(spec.tableDim);
  if (spec.kind != KernelKind::Apply)
    return std::nullopt;
  if (normsPerRow(spec.optimizer.kind) == 0)
    return std::string("a two-phase update needs an optimizer with norms of "
                       "rows, got: ") +
           std::string(toString(spec.optimizer.kind));
  return std::nullopt;
}

static std::string getBits(double value) {
  return llvm::utohexstr(llvm::bit_cast<uint64_t>(value), /*LowerCase=*/true);
}

static std::string getClipSuffix(const Optimizer &optimizer) {
  return optimizer.maxGradient != 0 ? "_c" + getBits(optimizer.maxGradient)
                                    : "";
}

static std::string getOptimizerSuffix(const KernelSpec &spec) {
  const Optimizer &optimizer = spec.optimizer;
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  std::string suffix;
  if (properties.states.perRow > 0)
    suffix += "_of" + std::to_string(spec.tableDim ? spec.tableDim : spec.dim);
  if (properties.hasBeta1)
    suffix += "_b" + getBits(optimizer.beta1);
  if (properties.hasBeta2)
    suffix += "_b" + getBits(optimizer.beta2);
  if (properties.hasEps)
    suffix += "_e" + getBits(optimizer.eps);
  if (properties.hasPenalties)
    suffix += "_l" + getBits(optimizer.l1Penalty) + "_l" +
              getBits(optimizer.l2Penalty);
  if (properties.hasEta)
    suffix += "_t" + getBits(optimizer.eta);
  if (properties.hasCounters)
    suffix += "_" + std::string(toString(decayModeOf(optimizer))) + "_h" +
              getBits(optimizer.counterHalflife) + "_i" +
              getBits(optimizer.adjustmentIter) + "_u" +
              getBits(optimizer.adjustmentUb);
  if (keepsShare(optimizer)) // its amount is an argument
    suffix += "_decoupled";
  else if (optimizer.weightDecay != 0)
    suffix += "_d" + getBits(optimizer.weightDecay);
  if (optimizer.stochasticRounding)
    suffix += "_stochastic";
  if (optimizer.catchUp)
    suffix += "_catchup";
  return suffix;
}

std::string getKernelName(const KernelSpec &spec) {
  const std::string element(toString(spec.element));
  const std::string dim = "_d" + std::to_string(spec.dim);
  const std::string id = spec.id == IdType::I32 ? "_i32" : "_i64";
  const std::string weighted = spec.weighted ? "_weighted" : "";
  const std::string optimizer(toString(spec.optimizer.kind));
  switch (spec.kind) {
  case KernelKind::Lookup:
    return (spec.pooled ? "nsk_lookup_sum_" : "nsk_lookup_rows_") + element +
           dim + id + weighted;
  case KernelKind::WeightGradient:
    return "nsk_weight_gradient_" + element + dim + id;
  case KernelKind::Update:
    return "nsk_update_" + optimizer + "_" + element + dim + weighted +
           getOptimizerSuffix(spec) + getClipSuffix(spec.optimizer);
  case KernelKind::Reduce:
    if (reduceReadsTable(spec.optimizer))
      return "nsk_reduce_" + optimizer + "_" + element + dim + weighted +
             getOptimizerSuffix(spec) + getClipSuffix(spec.optimizer);
    return "nsk_reduce" + dim + weighted + getClipSuffix(spec.optimizer);
  case KernelKind::Partial:
    return "nsk_partial" + dim + weighted;
  case KernelKind::RowSums:
    return "nsk_row_sums" + dim + weighted;
  case KernelKind::Apply:
    return "nsk_apply_" + optimizer + "_" + element + dim +
           getOptimizerSuffix(spec);
  }
  return "";
}

} // namespace neuroshard
