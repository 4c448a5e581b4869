//===- WeightGradients.cpp - Gradients of sample weights ------------------===//

#include "WeightGradients.h"
#include "GradientOffsets.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kIdsPerTask = 1 << 12;

/// Calls function(begin, end) on ranges of `count` ids, on all threads.
template <typename Function>
void forIds(ThreadPool &threads, int64_t count, const Function &function) {
  threads.parallelFor(ceilDivide(count, kIdsPerTask), [&](int64_t i) {
    function(i * kIdsPerTask, std::min((i + 1) * kIdsPerTask, count));
  });
}

} // namespace

void runWeightGradients(const nsrt_program &program,
                        std::span<const Shard> shards,
                        std::span<const WeightGradientPart> parts,
                        BufferPool &buffers, ThreadPool &threads) {
  for (const WeightGradientPart &part : parts) {
    const nsrt_lookup_entry &entry = program.lookups[part.lookup];
    const Shard &shard = shards[static_cast<size_t>(entry.slot)];
    if (!entry.weight_gradient)
      fail("the program has no kernel for the gradient of the weights of "
           "table \"",
           shard.table().name, "\"");
    Buffer offsets = buffers.acquireArray<int64_t>(BufferKind::SampleWeights,
                                                   part.ids.numIds);
    fillGradientOffsets(part.ids, 0, part.stride, as<int64_t>(offsets));
    forIds(threads, part.ids.numIds, [&](int64_t begin, int64_t end) {
      entry.weight_gradient(shard.weights(), part.ids.ids, as<int64_t>(offsets),
                            part.gradients, part.out, begin, end);
    });
  }
}

void addAndDivide(std::span<const PlacedValues> values, float *out,
                  int64_t count, float divisor, ThreadPool &threads) {
  std::fill_n(out, count, 0.0f);
  // One after the other: a place may get values of several lookups.
  for (const PlacedValues &run : values)
    forIds(threads, run.count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[run.places ? run.places[i] : run.first + i] += run.values[i];
    });
  if (divisor == 1)
    return;
  for (int64_t i = 0; i < count; ++i)
    out[i] /= divisor;
}

} // namespace neuroshard::runtime
