//===- StepTasks.h - Task arrays of a step's kernels ------------*- C++ -*-===//
//
// The arrays of GpuKernelABI.h for one set of parts, made on the host. Nothing
// here touches a GPU.
//
// Positions. The update sorts positions: one per id of every part that has
// gradients. An exact part has a range of positions of its own. Of other parts
// only the kernel knows which ids are theirs; parts of different features of
// one jagged input then share a range, a layer, as long as each position has
// at most one reader; what is looked up again gets another layer. A slot's
// positions are in the order of its parts, since gradients are added so. Those
// of small slots are numbered in the same way, behind all that are sorted.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPTASKS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPTASKS_H

#include "Binding.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Which keys the rows of each slot have. Slots that are updated come first,
/// in their order; then slots that are only read but whose lookups have
/// gradients of sample weights.
struct KeySpace {
  std::vector<int32_t> updated;  ///< sorted slots, in the order of their keys.
  std::vector<int32_t> small;    ///< slots that are updated without a sort.
  std::vector<int64_t> keyBegin; ///< per slot; -1: no keys.
  int64_t end = 0;               ///< all keys are less.
  int32_t keyBytes = 4;
  int32_t endBit = 1; ///< bits in which keys and the filler differ.

  explicit KeySpace(const Binding &binding);

  bool isSmall(size_t slot) const { return smallSlots[slot]; }
  /// Ids of this slot have positions.
  bool hasPositions(size_t slot) const {
    return keyBegin[slot] >= 0 || smallSlots[slot];
  }

private:
  std::vector<bool> smallSlots;
};

/// What a step takes to update a small slot: nsg_slot has the same fields.
struct SmallStep {
  int64_t rows = 0; ///< of the slot.
  int64_t firstPiece = 0;
  int64_t numPieces = 0;
  int64_t piecesPerSum = 1;
  int64_t numSums = 0;

  int64_t sumRows() const { return numSums * rows; }
};

/// f32 gradients of a part's items, from a base that all parts share.
struct GradientPlace {
  int64_t begin = 0;
  int64_t stride = 0;
  bool operator==(const GradientPlace &) const = default;
};

/// The kernels that run tasks in blocks.
enum TaskKernel { LookupBlocks, ExpandBlocks, GradientBlocks, OrderBlocks };
constexpr size_t kTaskKernels = 4;

struct StepTasks {
  std::vector<nsg_lookup_task> tasks; ///< one per part.
  /// Per kernel and task.
  std::array<std::vector<int64_t>, kTaskKernels> blocks;
  int64_t numPositions = 0; ///< that are sorted.
  int64_t numUnsorted = 0;  ///< behind them.
  /// Some positions may have no reader: keys must be filled first.
  bool filled = false;
  /// Upper bound of the distinct rows of each updated slot.
  std::vector<int64_t> rowsOfUpdated;
  std::vector<SmallStep> small; ///< as KeySpace::small.

  bool hasPositions() const { return numPositions + numUnsorted > 0; }
  int64_t numPieces() const {
    return small.empty() ? 0 : small.back().firstPiece + small.back().numPieces;
  }
};

/// Makes the tasks of checked parts. `weights` per slot. Without training there
/// are no positions. `residentBlocks` of nsg_lookup fill the GPU. Throws a
/// RuntimeError if there are too many of something.
StepTasks makeTasks(const Binding &binding, const KeySpace &keys,
                    std::span<const nsc_part> parts,
                    std::span<void *const> weights, bool training,
                    int64_t residentBlocks);

/// Sets where the gradients of each part are.
void placeGradients(StepTasks &step, std::span<const GradientPlace> places);

/// Sets what nsg_weight_gradient needs, for the parts that ask for it.
void addWeightGradients(const Binding &binding, StepTasks &step,
                        std::span<const nsc_part> parts,
                        std::span<const nsc_gradient> gradients,
                        const float *base);

/// Task of each block, for kernels that run tasks in blocks.
std::vector<int32_t> makeTaskOfBlock(std::span<const int64_t> blocks);

/// Where gradients are if they are laid out as the results are: for parts
/// without results nothing is known, and they are all placed at 0.
std::vector<GradientPlace> placesOfResults(const Binding &binding,
                                           std::span<const nsc_part> parts);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_STEPTASKS_H
