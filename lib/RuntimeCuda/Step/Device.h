//===- Device.h - One device of a plan on a GPU ----------------*- C++ -*-===//
//
// The object behind nsc_device. The context must be current in all functions.
//
// A training step uses two streams. The caller's stream runs the lookups and,
// later, the update. The stream `side` expands and sorts the ids meanwhile. It
// waits for the work before the forward, since the sort overwrites what the
// last update reads; the update waits for the sort.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_DEVICE_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_DEVICE_H

#include "BadIds.h"
#include "Kernels.h"
#include "LearningRates.h"
#include "PlanCache.h"
#include "ShardMemory.h"
#include "StepMemory.h"
#include "Uploader.h"
#include "neuroshard/Runtime/Backend.h"

#include <span>
#include <string>
#include <vector>

namespace neuroshard::cuda {

/// The distinct rows of a slot in a step, in device memory: their keys, in
/// ascending order, are keys[runBegin[0]] to keys[runBegin[1] - 1], and row r
/// has the key firstKey + r.
struct DistinctRows {
  const void *keys;
  int32_t keyBytes;
  int64_t firstKey;
  const int32_t *runBegin;
};

class Device {
public:
  /// `binding` was read from `directory`.
  /// With late checks, check() reports what kernels find wrong with ids.
  Device(const Gpu &gpu, const std::string &directory, Binding binding,
         const nsc_options &options,
         runtime::IdCheck idCheck = runtime::IdCheck::Late);

  void initialize(uint64_t seed);

  void forward(std::span<const Part> parts, int32_t training, CUstream stream);
  void prepare(std::span<const Part> parts, int32_t training, CUstream stream);
  void setStep(float learningRate, int64_t step, CUstream stream);
  /// The same with the step size of each slot; of slots without an optimizer
  /// it is not read.
  void setStepSizes(std::span<const runtime::StepSize> ofSlot, CUstream stream);
  void backward(std::span<const nsc_gradient> gradients, CUstream stream);
  /// The gradients of the sample weights of parts, without a forward.
  void computeWeightGradients(std::span<const Part> parts,
                              std::span<const nsc_gradient> gradients,
                              CUstream stream);
  void applyNorms(CUstream stream);
  /// Adds the gradients of parts up by row, without an update; sums are 0
  /// before.
  void addUpRows(std::span<const Part> parts,
                 std::span<const nsc_gradient> gradients,
                 std::span<const runtime::SlotSums> sums, CUstream stream);
  /// Adds the gradients of parts up by distinct row, without an update.
  void sumByRow(std::span<const Part> parts,
                std::span<const nsc_gradient> gradients, CUstream stream);
  /// The sums of a slot, after sumByRow.
  const float *sumsOf(int32_t slot) const;
  /// Updates the rows of slots that have gradients by their sums.
  void updateRows(std::span<const runtime::SlotSums> sums, CUstream stream);
  nsc_norms normsOf(int32_t slot) const;
  /// After the sort of a forward with training, for a slot that is updated.
  DistinctRows distinctRowsOf(int32_t slot) const;
  /// The message of a bad id since the last check, if there is one.
  std::optional<std::string> check(CUstream stream);

  nsc_memory memoryBytes() const;

  const Gpu &gpu;
  const Binding binding;
  const Kernels kernels;
  const KeySpace keys;
  std::vector<ShardMemory> tables;

private:
  // PrepareStep.cpp
  StepPlan &planFor(std::span<const Part> parts, StepKind kind, CUstream stream,
                    bool capturing);
  void fill(StepPlan &plan, std::span<const Part> parts, StepKind kind,
            CUstream stream);
  void reserveFor(const StepPlan &plan);
  std::vector<GradientPlace> expectedPlaces(std::span<const Part> parts) const;
  nsg_slot describeSlot(size_t slot) const;
  nsg_slot describeSorted(size_t updated, const StepPlan &plan) const;
  void putTraining(StepPlan &plan, Uploader &uploader) const;
  void putSorted(StepPlan &plan, const float *gradients,
                 Uploader &uploader) const;

  // Forward.cpp
  void beginCall(CUstream stream, bool capturing);
  void expandAndSort(StepPlan &plan, CUstream stream);
  void fillKeys(const StepPlan &plan, CUstream stream) const;
  void sortPositions(const StepPlan &plan, CUstream stream);
  void expand(const StepPlan &plan, const nsg_positions *positions,
              CUstream stream) const;
  void checkTraining(int32_t training) const;

  // Backward.cpp
  StepPlan &planOfBackward(size_t numGradients, bool capturing);
  bool hasGradients(const StepPlan &plan, size_t part) const;
  const float *checkGradients(const StepPlan &plan,
                              std::span<const nsc_gradient> gradients) const;
  size_t updatedIndex(int32_t slot) const;
  size_t twoPhaseIndex(int32_t slot) const;
  void bindGradients(StepPlan &plan, std::span<const nsc_gradient> gradients,
                     CUstream stream);
  void launchWeightGradients(const StepPlan &plan, CUstream stream) const;
  void findPlaces(const StepPlan &plan, CUstream stream) const;
  void addChunks(const StepPlan &plan, CUstream stream) const;
  void updateWith(Kernel kernel, int32_t GpuSlot::*variant,
                  const StepPlan &plan, CUstream stream) const;
  void launchOnRuns(Kernel kernel, std::span<const int32_t> variants,
                    const StepPlan &plan, CUstream stream) const;
  void launchBodies(Kernel kernel, std::span<const int32_t> variants,
                    std::span<const int64_t> items, const nsg_slot *slots,
                    const nsg_sorted *sorted, CUstream stream) const;
  int64_t blocksFor(KernelBody kernel, int64_t items) const;

  const runtime::IdCheck idCheck;
  OwnStream side;
  OwnStream uploads;
  UploadRing ring;
  StepMemory stepMemory;
  PlanCache plans;
  StepPlan sumsUpdate; ///< the arrays of updateRows().
  BadIds badIds;
  LearningRates learningRates;
  std::vector<void *> weights; ///< per slot.
  SortFunction sort = nullptr; ///< found when it is first needed.

  StepPlan *trained = nullptr;  ///< of the last forward, for backward.
  StepPlan *reduced = nullptr;  ///< of the last backward, for applyNorms.
  StepPlan *unjoined = nullptr; ///< no stream waits for its sort yet.
  /// Places of the last backward's gradients; the next are likely the same.
  std::vector<GradientPlace> lastPlaces;
  std::vector<int32_t> lastLookups;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_DEVICE_H
