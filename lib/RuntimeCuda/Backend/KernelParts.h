//===- KernelParts.h - Parts of a step as GPU kernels take them -*- C++ -*-===//
//
// Kernels read and write 16 bytes at a time where a row has a multiple of
// them. Rows that are not aligned so are staged in memory that is.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELPARTS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELPARTS_H

#include "Step/Binding.h"
#include "Step/Part.h"
#include "neuroshard/Runtime/Backend.h"

#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Rows of f32 values where kernels take them.
struct KernelRows {
  float *first;
  int64_t stride;
};

/// Parts, and the gradients of each.
struct StagedGradients {
  std::vector<Part> parts;
  std::vector<nsc_gradient> gradients;
};

/// Stages the rows of one call. What it hands out lives as long as it does.
class RowStaging {
public:
  RowStaging(const Binding &binding, runtime::Backend &backend,
             runtime::BufferSource &source)
      : binding(binding), backend(backend), source(source) {}

  /// Whether kernels take rows of the lookup's results there.
  bool takes(int32_t lookup, const float *first, int64_t stride) const;
  /// Rows with undefined values for the results of a lookup.
  KernelRows make(BufferKind kind, int32_t lookup, int64_t rows);
  /// Gradients of a lookup's results: themselves, or a copy.
  KernelRows read(int32_t lookup, const float *gradients, int64_t stride,
                  int64_t rows);
  int64_t dimOf(int32_t lookup) const;
  /// Whether the lookup's shard has a cache of rows.
  bool hasCache(int32_t lookup) const;
  /// The ids of a lookup, places if its shard has a cache of rows, without a
  /// place for its results.
  Part partOf(int32_t lookup, const runtime::PeerIds &ids) const;
  /// The ids whose rows have gradients, and these.
  Part partOf(const runtime::GradientPart &part) const;
  nsc_gradient gradientOf(const runtime::GradientPart &part);
  /// The same of all parts that have ids.
  StagedGradients gradientsOf(std::span<const runtime::GradientPart> given);

private:
  const Binding &binding;
  runtime::Backend &backend;
  runtime::BufferSource &source;
  std::vector<runtime::Buffer> buffers;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_KERNELPARTS_H
