//===- StepTasks.h - Task arrays of a step's kernels ------------*- C++ -*-===//
//
// The arrays of GpuKernelABI.h for one set of parts, made on the host without a
// GPU.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPTASKS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPTASKS_H

#include "SortKeys.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Where a part's gradients are: f32 elements from a base that all parts share.
struct GradientPlace {
  int64_t begin = 0;
  int64_t stride = 0;
  bool operator==(const GradientPlace &) const = default;
};

/// Kernels whose blocks run tasks.
enum TaskKernel { LookupBlocks, ExpandBlocks, GradientBlocks };
constexpr size_t kTaskKernels = 3;

struct StepTasks {
  std::vector<nsg_lookup_task> tasks; ///< one per part.
  /// In the order of their positions.
  std::vector<nsg_cached_part> cachedParts;
  /// Per kernel and task.
  std::array<std::vector<int64_t>, kTaskKernels> blocks;
  int64_t numPositions = 0;
  /// Whether some positions may have no reader, so that keys are filled first.
  bool filled = false;
  /// Upper bound of the distinct rows of each updated slot.
  std::vector<int64_t> rowsOfUpdated;
};

/// Makes the tasks of checked parts. `weights` is per slot. Without training
/// there are no positions. `residentBlocks` is how many blocks of nsg_lookup
/// the GPU runs at once. Throws a RuntimeError if there are too many ids or
/// blocks.
StepTasks makeTasks(const Binding &binding, const KeySpace &keys,
                    std::span<const Part> parts, std::span<void *const> weights,
                    bool training, int64_t residentBlocks);

/// Sets where the gradients of each part are.
void placeGradients(StepTasks &step, std::span<const GradientPlace> places);

/// Adds the tasks of nsg_weight_gradient for the parts that ask for it.
void addWeightGradients(const Binding &binding, StepTasks &step,
                        std::span<const Part> parts,
                        std::span<const nsc_gradient> gradients,
                        const float *base);

/// Task of each block, for kernels that run tasks in blocks.
std::vector<int32_t> makeTaskOfBlock(std::span<const int64_t> blocks);

/// The places of gradients that are laid out as the results are. Parts without
/// results are placed at 0.
std::vector<GradientPlace> placesOfResults(const Binding &binding,
                                           std::span<const Part> parts);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPTASKS_H
