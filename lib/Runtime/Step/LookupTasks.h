//===- LookupTasks.h - Forward kernels as parallel tasks --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_LOOKUPTASKS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_LOOKUPTASKS_H

#include "Device/Device.h"
#include "Memory/StreamingCopy.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <functional>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Bags (or ids, if unpooled) of one entry and one peer.
struct LookupTask {
  nsrt_lookup_kernel kernel;
  const std::byte *weights;
  const std::byte *ids;
  const int64_t *offsets;
  const float *sampleWeights;
  float *out;
  int64_t width; ///< columns.
  int64_t stride;
  int64_t begin;
  int64_t end;
  int64_t bytes; ///< of rows to read.
  /// Of each bag, if the task computes a mean; else null.
  const float *divisors = nullptr;
  bool isStreamed = false;
  /// Set for f32 rows without sample weights; else null.
  SingleRows single = {};
};

/// Adds the task of one entry for the bags of one peer.
void addEntry(const Device &device, int32_t idBytes, const EntryLayout &entry,
              const ReceivedSet &received, size_t peer, float *out,
              int64_t stride, std::vector<LookupTask> &tasks);

/// Adds the tasks of those entries of a set for which `takes(entry)`. `blocks`
/// are per peer and lie one after the other from `rows` on.
void addSet(const Device &device, int32_t idBytes, const StreamSet &set,
            const ReceivedSet &received, std::span<const Block> blocks,
            float *rows, const std::function<bool(const EntryLayout &)> &takes,
            std::vector<LookupTask> &tasks);

/// Lets tasks stream if their results are large together.
void chooseStreamed(std::vector<LookupTask> &tasks);

/// Runs tasks on all threads, cut into parts of about the same size.
void runAll(Device &device, const std::vector<LookupTask> &whole);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_LOOKUPTASKS_H
