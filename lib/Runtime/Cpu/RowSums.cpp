//===- RowSums.cpp - Gradients added up by row on CPUs --------------------===//
//
// Tasks share the columns of a table and not its ids, so that each row's
// gradients are added in their order.
//
//===----------------------------------------------------------------------===//

#include "RowSums.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/InstructionSets.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <vector>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kColumnsPerTask = 32, kRowsPerTask = 1 << 10;

/// Some columns of the sums of one slot.
struct ColumnTask {
  const SlotSums *sums;
  Range cols;
};

/// Bags ahead whose gradients are fetched: they are as far apart as all results
/// of a sample are long.
constexpr int64_t kFetchedBags = 8;
constexpr int64_t kFloatsPerCacheLine = 16;

/// Adds the gradients of one part to some columns.
template <typename Id> class PartAdder {
public:
  PartAdder(const GradientPart &part, const ColumnTask &task)
      : part(part), ids(reinterpret_cast<const Id *>(part.ids.ids)),
        weights(part.ids.weights), padding(part.padding.value_or(-1)),
        width(task.cols.size()), stride(task.sums->stride),
        sums(task.sums->sums + task.cols.begin),
        counts(task.cols.begin == 0 ? task.sums->counts : nullptr),
        gradients(part.gradients + task.cols.begin) {}

  void run() const {
    runWithWidestVectors([this]() NEUROSHARD_INLINE { add(); });
  }

private:
  NEUROSHARD_INLINE void add() const {
    const int64_t *offsets = part.ids.offsets;
    int64_t bags = offsets ? part.ids.bags : part.ids.numIds;
    for (int64_t b = 0; b < bags; ++b) {
      const float *gradient = gradients + b * part.stride;
      if (b + kFetchedBags < bags)
        fetch(gradient + kFetchedBags * part.stride);
      int64_t begin = offsets ? offsets[b] : b;
      int64_t end = offsets ? offsets[b + 1] : b + 1;
      for (int64_t j = begin; j < end; ++j)
        if (int64_t row = ids[j]; row != padding)
          addTo(row, gradient, j);
    }
  }

  NEUROSHARD_INLINE void fetch(const float *gradient) const {
    for (int64_t c = 0; c < width; c += kFloatsPerCacheLine)
      __builtin_prefetch(gradient + c);
  }

  NEUROSHARD_INLINE void addTo(int64_t row, const float *__restrict gradient,
                               int64_t j) const {
    float *__restrict sum = sums + row * stride;
    if (weights)
      for (int64_t c = 0; c < width; ++c)
        sum[c] += weights[j] * gradient[c];
    else
      for (int64_t c = 0; c < width; ++c)
        sum[c] += gradient[c];
    if (counts)
      counts[row] += 1;
  }

  const GradientPart &part;
  const Id *ids;
  const float *weights;
  int64_t padding, width, stride;
  float *sums;
  float *counts;
  const float *gradients;
};

template <typename Id>
void addPart(const GradientPart &part, const ColumnTask &task) {
  PartAdder<Id>(part, task).run();
}

/// The rows of a slot that have gradients, as update kernels take them: each
/// has one, its sum.
struct SummedRows {
  Buffer rows, segments, offsets;
  Buffer weights; ///< 1 for each; weighted slots only.
  int64_t count = 0;
};

SummedRows findRows(const SlotSums &sums, bool isWeighted,
                    BufferPool &buffers) {
  auto acquire = [&](int64_t count) {
    return buffers.acquireArray<int64_t>(BufferKind::Sort, count);
  };
  SummedRows found{acquire(sums.rows), acquire(sums.rows + 1),
                   acquire(sums.rows), nullptr};
  for (int64_t row = 0; row < sums.rows; ++row) {
    if (!(sums.counts[row] > 0))
      continue;
    as<int64_t>(found.rows)[found.count] = row;
    as<int64_t>(found.segments)[found.count] = found.count;
    as<int64_t>(found.offsets)[found.count] = row * sums.stride;
    ++found.count;
  }
  as<int64_t>(found.segments)[found.count] = found.count;
  if (isWeighted) {
    found.weights = buffers.acquireArray<float>(BufferKind::Sort, sums.rows);
    std::fill_n(as<float>(found.weights), found.count, 1.0f);
  }
  return found;
}

} // namespace

void addUpRows(const nsrt_program &program, std::span<const GradientPart> parts,
               std::span<const SlotSums> sums, ThreadPool &threads) {
  std::vector<ColumnTask> tasks;
  for (const SlotSums &slot : sums) {
    int64_t dim = program.slots[slot.slot].dim;
    int64_t step = threads.numThreads() > 1 ? kColumnsPerTask : dim;
    for (int64_t begin = 0; begin < dim; begin += step)
      tasks.push_back({&slot, {begin, std::min(begin + step, dim)}});
  }
  threads.parallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const ColumnTask &task = tasks[static_cast<size_t>(i)];
    for (const GradientPart &part : parts) {
      const nsrt_lookup_entry &lookup = program.lookups[part.lookup];
      if (lookup.slot == task.sums->slot)
        (lookup.id_bytes == 4 ? addPart<int32_t> : addPart<int64_t>)(part,
                                                                     task);
    }
  });
}

void updateRows(const nsrt_program &program, std::span<const Shard> shards,
                std::span<const SlotSums> sums,
                std::span<const StepSize> stepSizes, BufferPool &buffers,
                ThreadPool &threads) {
  for (const SlotSums &slot : sums) {
    auto index = static_cast<size_t>(slot.slot);
    const nsrt_slot_entry &kernels = program.slots[index];
    const Shard &shard = shards[index];
    if (!kernels.update)
      fail("the program was compiled for inference; it has no update kernel ",
           "for table \"", shard.table().name, "\"");
    SummedRows found = findRows(slot, kernels.weighted, buffers);
    threads.parallelFor(ceilDivide(found.count, kRowsPerTask), [&](int64_t i) {
      kernels.update(
          shard.weights(), shard.state(0), shard.state(1), shard.state(2),
          as<const int64_t>(found.rows), as<const int64_t>(found.segments),
          as<const int64_t>(found.offsets), as<const float>(found.weights),
          slot.sums, stepSizes[index].size, stepSizes[index].kept,
          stepSizes[index].seed, stepSizes[index].first,
          stepSizes[index].second, stepSizes[index].step,
          stepSizes[index].history, i * kRowsPerTask,
          std::min((i + 1) * kRowsPerTask, found.count));
    });
  }
}

} // namespace neuroshard::runtime
