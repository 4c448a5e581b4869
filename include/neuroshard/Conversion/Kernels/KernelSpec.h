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

/// Partial adds some of a row's gradients, RowSums all of them, without an
/// update; only GPUs have them.
enum class KernelKind {
  Lookup,
  WeightGradient,
  Update,
  Reduce,
  Apply,
  Partial,
  RowSums
};

/// One kernel of Runtime/KernelABI.h. A comment names the kinds that
/// read its field; without any, all do.
struct KernelSpec {
  KernelKind kind = KernelKind::Lookup;
  /// Columns of the shard, at least 1.
  int64_t dim = 0;
  /// Element type of the weights (of Reduce if it reads the table); quantized
  /// only for Lookup and WeightGradient.
  ElementType element = ElementType::F32;
  /// Type of the ids (Lookup, WeightGradient).
  IdType id = IdType::I64;
  /// A sum per bag, or one row per id (Lookup).
  bool pooled = true;
  /// Terms are multiplied by sample weights (pooled Lookup, Update, Reduce).
  bool weighted = false;
  /// The optimizer (Update, Apply; of Reduce its bound of gradients, and all of
  /// it if it reads the table).
  Optimizer optimizer;
  /// Columns of the whole table, the divisor of a row-wise optimizer's mean
  /// (Update, Apply); at least `dim`. 0 stands for `dim`.
  int64_t tableDim = 0;
};

/// Whether Reduce reads weights or states: with a trust ratio, and under L2
/// weight decay of a row-wise optimizer.
constexpr bool reduceReadsTable(const Optimizer &optimizer) {
  return propertiesOf(optimizer.kind).hasTrustRatio ||
         normsNeedWeights(optimizer);
}

/// What is wrong with the specification, or nothing.
std::optional<std::string> findProblem(const KernelSpec &spec);

/// The canonical symbol name: equal exactly for equal kernels.
std::string getKernelName(const KernelSpec &spec);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_KERNELSPEC_H
