//===- LookupTasks.cpp - Forward kernels as parallel tasks ----------------===//

#include "LookupTasks.h"
#include "Host/StreamingCopy.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

/// Bags (or ids, if unpooled) of one part.
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
  const float *divisors;
  bool isStreamed = false;
  /// Set for f32 rows without sample weights; else null.
  SingleRows single = {};
};

/// Bytes of rows that one task reads: enough to be worth a task, since each
/// waits for its first rows; few enough that all threads end at about the same
/// time.
constexpr int64_t kLeastBytes = 1 << 16, kMostBytes = 1 << 19;
constexpr int64_t kTasksPerThread = 16;

/// Cuts tasks into tasks that read about the same number of bytes each.
std::vector<LookupTask> cut(const std::vector<LookupTask> &tasks, int threads) {
  int64_t total = 0;
  for (const LookupTask &task : tasks)
    total += task.bytes;
  int64_t bytes =
      std::clamp(total / (threads * kTasksPerThread), kLeastBytes, kMostBytes);
  std::vector<LookupTask> all;
  for (const LookupTask &whole : tasks) {
    int64_t items = whole.end;
    int64_t chunks = std::clamp<int64_t>(whole.bytes / bytes, 1,
                                         std::max<int64_t>(items, 1));
    for (int64_t i = 0; i < chunks; ++i) {
      LookupTask task = whole;
      task.begin = items * i / chunks;
      task.end = items * (i + 1) / chunks;
      if (task.begin < task.end)
        all.push_back(task);
    }
  }
  return all;
}

/// Runs the kernel and divides means. `out` is the row of bag 0, `stride` the
/// floats between rows.
void runInto(const LookupTask &task, float *out, int64_t stride) {
  task.kernel(task.weights, task.ids, task.offsets, task.sampleWeights, out,
              stride, task.begin, task.end);
  for (int64_t b = task.begin; task.divisors && b < task.end; ++b)
    divideRow(out + b * stride, task.width, task.divisors[b]);
}

/// Sums rows in memory of the thread, which stays in its cache, and streams
/// them to the result.
void runStreamed(const LookupTask &task) {
  thread_local std::vector<float> rows;
  int64_t count = task.end - task.begin;
  rows.resize(std::max(rows.size(), static_cast<size_t>(count * task.width)));
  // Kernels count from bag 0.
  auto first = reinterpret_cast<uintptr_t>(rows.data()) -
               static_cast<uintptr_t>(task.begin * task.width) * sizeof(float);
  runInto(task, reinterpret_cast<float *>(first), task.width);
  streamRows(rows.data(), count, task.width,
             task.out + task.begin * task.stride, task.stride);
}

/// True if every bag of the task has one id and its sum is just that row.
bool isCopy(const LookupTask &task) {
  if (!task.single.weights || task.divisors)
    return false;
  int64_t other = 0; // no early exit, to vectorise
  for (int64_t b = task.begin; b < task.end; ++b)
    other |= (task.offsets[b + 1] - task.offsets[b]) ^ 1;
  return other == 0;
}

void run(const LookupTask &task) {
  if (task.isStreamed && isCopy(task))
    streamSingleRows(task.single, task.offsets[task.begin],
                     task.offsets[task.end], task.width,
                     task.out + task.begin * task.stride, task.stride);
  else if (task.isStreamed)
    runStreamed(task);
  else
    runInto(task, task.out, task.stride);
}

/// Those of its bags.
int64_t numIds(const LookupPart &part, bool isPooled) {
  const PeerIds &ids = part.ids;
  return isPooled ? ids.offsets[ids.bags] - ids.offsets[0] : ids.numIds;
}

bool isF32(const nsrt_slot_entry &slot) {
  return slot.row_bytes == slot.dim * static_cast<int32_t>(sizeof(float));
}

LookupTask makeTask(const nsrt_program &program, std::span<const Shard> slots,
                    const LookupPart &part) {
  const nsrt_lookup_entry &entry = program.lookups[part.lookup];
  const nsrt_slot_entry &slot = program.slots[entry.slot];
  const std::byte *weights = slots[static_cast<size_t>(entry.slot)].weights();
  LookupTask task{entry.forward,
                  weights,
                  part.ids.ids,
                  part.ids.offsets,
                  part.ids.weights,
                  part.out,
                  slot.dim,
                  part.stride,
                  0,
                  entry.pooled ? part.ids.bags : part.ids.numIds,
                  numIds(part, entry.pooled) * slot.row_bytes,
                  part.divisors};
  if (isF32(slot) && !part.ids.weights)
    task.single = {reinterpret_cast<const float *>(weights),
                   nsrt_row_stride(slot.dim, sizeof(float)), part.ids.ids,
                   entry.id_bytes};
  return task;
}

/// Lets tasks stream if their results are large together.
void chooseStreamed(std::vector<LookupTask> &tasks) {
  int64_t bytes = 0;
  for (const LookupTask &task : tasks)
    bytes += (task.end - task.begin) * task.width *
             static_cast<int64_t>(sizeof(float));
  for (LookupTask &task : tasks)
    task.isStreamed =
        bytes >= kStreamedBytes && canStream(task.out, task.width, task.stride);
}

} // namespace

void runLookups(const nsrt_program &program, std::span<const Shard> slots,
                std::span<const LookupPart> parts, bool isRead,
                ThreadPool &threads) {
  std::vector<LookupTask> whole;
  for (const LookupPart &part : parts)
    whole.push_back(makeTask(program, slots, part));
  if (!isRead)
    chooseStreamed(whole);
  std::vector<LookupTask> tasks = cut(whole, threads.numThreads());
  threads.parallelFor(static_cast<int64_t>(tasks.size()),
                      [&](int64_t i) { run(tasks[static_cast<size_t>(i)]); });
}

} // namespace neuroshard::runtime
