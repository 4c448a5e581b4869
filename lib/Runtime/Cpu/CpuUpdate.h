//===- CpuUpdate.h - Sorted update of the slots of a device -----*- C++ -*-===//
//
// One parallel launch over chunks of distinct rows of all slots, and a second
// one after the exchange of norms for two-phase optimizers. Or, for copies of
// shards, sums by row and no update.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_CPUUPDATE_H
#define NEUROSHARD_LIB_RUNTIME_CPU_CPUUPDATE_H

#include "Host/BufferPool.h"
#include "RowSort.h"
#include "Shards/Shard.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <map>
#include <span>
#include <vector>

namespace neuroshard::runtime {

class CpuUpdate : public Update, public DistinctSums {
public:
  /// Groups the ids of `parts` by slot and sorts them. All other arguments must
  /// outlive it.
  CpuUpdate(const nsrt_program &program, std::span<const Shard> shards,
            BufferPool &buffers, ThreadPool &threads,
            std::vector<GradientPart> parts);

  void run(std::span<const StepSize> stepSizes) override;
  Range distinctRows(int32_t slot, Range rows, RowNumber) const override;
  const float *norms(int32_t slot) const override;
  void finish(std::span<const NormTerm> terms) override;

  /// Takes the place of run() and finish().
  void sumRows();
  int64_t numRows(int32_t slot) const override;
  void writeRows(int32_t slot, int32_t idBytes, std::byte *to) const override;
  const float *sums(int32_t slot) const override;

private:
  /// A part and the number of its first id among the slot's ids.
  struct Source {
    const GradientPart *part;
    int64_t firstNumber;
  };

  struct SlotUpdate {
    size_t slot = 0;
    std::vector<Source> sources;
    int64_t numIds = 0; ///< padding included.
    const SortedRows *sorted = nullptr;
    const float *gradients = nullptr; ///< from which offsets count.
    Buffer gradientOffsets;           ///< i64 [sorted->numIds].
    /// i64 [sorted->numRows], of the rows in the shard's cache; null without.
    Buffer places;
    Buffer sampleWeights; ///< f32 [sorted->numIds]; weighted slots only.
    // Two-phase optimizers, and sumRows().
    Buffer reduced;
    Buffer norms;
  };

  /// Distinct rows [begin, end) of a slot.
  struct Task {
    const SlotUpdate *update;
    int64_t begin;
    int64_t end;
  };

  void addSource(const GradientPart &part, SlotUpdate &update);
  void checkKernels() const;
  void sort();
  void sortIds(const SlotUpdate &update, SortedRows &sorted) const;
  void fillInputs(SlotUpdate &update) const;
  void placeRows(SlotUpdate &update, int64_t *ofNumber) const;
  void fillSampleWeights(SlotUpdate &update, float *ofNumber) const;
  void makeTasks();
  int64_t strideOf(const SlotUpdate &update) const;
  /// Of one row.
  int64_t normsOf(const SlotUpdate &update) const;
  void sumRows(const Task &task) const;
  void runFirstPhase(const Task &task) const;
  void runSecondPhase(const Task &task) const;
  Buffer addUpNorms(const SlotUpdate &update,
                    std::span<const NormTerm *const> terms) const;

  /// Rows as kernels count them.
  static const int64_t *rowsOf(const SlotUpdate &update) {
    return as<const int64_t>(update.places ? update.places
                                           : update.sorted->rows);
  }
  const SlotUpdate &updateOf(int32_t slot) const {
    return updates[static_cast<size_t>(slot)];
  }
  const nsrt_slot_entry &kernelsOf(const SlotUpdate &update) const {
    return program.slots[update.slot];
  }

  const nsrt_program &program;
  std::span<const Shard> shards;
  BufferPool &buffers;
  ThreadPool &threads;
  std::vector<GradientPart> parts;
  std::vector<SlotUpdate> updates; ///< per slot; without ids: empty.
  /// Slots that read the same streams share a sort.
  std::map<std::vector<int64_t>, SortedRows> sorts;
  std::vector<Task> tasks;
  std::vector<StepSize> stepSizes;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_CPUUPDATE_H
