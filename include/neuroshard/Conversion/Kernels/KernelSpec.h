//===- KernelSpec.h - Specification of a kernel -----------------*- C++ -*-===//
//
// A kernel is specialised for its columns, element and id types, pooling and
// optimizer. Two specifications with the same name are the same kernel.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_KERNELSPEC_H
#define NEUROSHARD_CONVERSION_KERNELS_KERNELSPEC_H

#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/Types.h"

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard {

/// Partial and SmallSums, sums of some of a row's gradients, are for GPUs
/// alone.
enum class KernelKind {
  Lookup,
  WeightGradient,
  Update,
  Reduce,
  Apply,
  Partial,
  SmallSums
};

/// An optimizer with its constants; docs/kernels.md has the formulas.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::SGD;
  double eps = 0.0;         ///< Adagrad, rowwise Adagrad, Adam.
  double beta1 = 0.0;       ///< Adam.
  double beta2 = 0.0;       ///< Adam.
  double weightDecay = 0.0; ///< L2: added to the gradient as decay * weight.
};

/// One kernel of Runtime/KernelABI.h. Fields that a kind does not name in
/// its comment are not read for it.
struct KernelSpec {
  KernelKind kind = KernelKind::Lookup;
  /// Columns of the shard, at least 1.
  int64_t dim = 0;
  /// Element type of the weights (all but Reduce).
  ElementType element = ElementType::F32;
  /// Type of the ids (Lookup, WeightGradient).
  IdType id = IdType::I64;
  /// A sum per bag, or one row per id (Lookup).
  bool pooled = true;
  /// Terms are multiplied by sample weights (pooled Lookup, Update, Reduce).
  bool weighted = false;
  /// The optimizer (Update, Apply).
  OptimizerSpec optimizer;
  /// Columns of the whole table, the divisor of a row-wise optimizer's mean
  /// (Update, Apply); at least `dim`. 0 stands for `dim`.
  int64_t tableDim = 0;
};

/// What is wrong with the specification, or nothing.
std::optional<std::string> findProblem(const KernelSpec &spec);

/// The canonical symbol name: equal exactly for equal kernels.
std::string getKernelName(const KernelSpec &spec);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_KERNELSPEC_H
