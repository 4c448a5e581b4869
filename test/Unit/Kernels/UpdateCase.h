//===- UpdateCase.h - A step of an update kernel under test -----*- C++ -*-===//
//
// What the tests of optimizer steps have in common: gradients, the memory of a
// slot, calls of its kernels, and single operations of the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_KERNELS_UPDATECASE_H
#define NEUROSHARD_TEST_KERNELS_UPDATECASE_H

#include "Elements.h"
#include "GuardedArray.h"
#include "KernelGrid.h"

#include "neuroshard/Runtime/KernelABI.h"

#include <vector>

namespace neuroshard {

inline constexpr int64_t kTableRows = 61;
inline constexpr float kStepSize = 0.0371f;
/// Of the weights, under decoupled weight decay.
inline constexpr float kKept = 0.9871f;
/// Of stochastic rounding.
inline constexpr uint32_t kSeed = 0x9e3779b9;
/// Of moments, with a trust ratio.
inline constexpr float kFirst = 1.7f;
inline constexpr float kSecond = 3.1f;

/// Unique rows, ascending with gaps, and segments of gradients for them:
/// lengths below and above the prefetch distance.
struct Segments {
  std::vector<int64_t> rows, bounds{0}, gradientOffsets;
  std::vector<float> sampleWeights, gradients;

  Segments(int64_t dim, Data data);
  int64_t size() const { return rows.size(); }

  /// The summed gradient of unique row `unique`, as the slot clips it.
  std::vector<float> sum(int64_t unique, const SlotSpec &slot) const;
};

/// A slot's memory, and what it was before the step.
struct UpdatedSlot {
  const SlotSpec &spec;
  std::vector<float> initialWeights, initialStates[2];
  StoredRows weights;
  StoredRows elementStates[2];
  /// The states per row: the first is as the first state per element, then
  /// numbers of last steps, and counts.
  std::vector<float> initialRows[3];
  GuardedArray<float> rowState, lastSteps, counts;

  UpdatedSlot(const SlotSpec &spec, Data data);

  /// Null if the optimizer has no such state.
  float *state(int number);
};

/// What reduce writes: its rows and the norms, normsPerRow of each.
struct ReducedRows {
  StoredRows rows;
  GuardedArray<float> norms;

  ReducedRows(const SlotSpec &slot, const Segments &segments);
};

void runUpdate(const nsrt_slot_entry &entry, UpdatedSlot &shard,
               const Segments &segments);
void runReduce(const nsrt_slot_entry &entry, UpdatedSlot &shard,
               const Segments &segments, ReducedRows &reduced);
void runApply(const nsrt_slot_entry &entry, UpdatedSlot &shard,
              const Segments &segments, ReducedRows &reduced);

/// Rows that are not in the step keep their weights, and padding its value.
void expectOthersUntouched(UpdatedSlot &shard, const Segments &segments);

/// With L2 weight decay.
float withDecay(const Optimizer &optimizer, float gradient, float weight);
float average(double beta, float before, float value);
/// As the slot stores it. Under stochastic rounding the value below or above,
/// by as many random bits as the type lacks.
float stored(const SlotSpec &slot, float weight, float gradient);
float ulpOf(float value);
double squaredNorm(const std::vector<float> &values);
/// Columns of the whole table.
int64_t getTableDim(const SlotSpec &slot);

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_UPDATECASE_H
