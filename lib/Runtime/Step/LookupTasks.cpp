//===- LookupTasks.cpp - Forward kernels as parallel tasks ----------------===//

#include "LookupTasks.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

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

} // namespace

void addEntry(const Device &device, int32_t idBytes, const EntryLayout &entry,
              const ReceivedSet &received, size_t peer, float *out,
              int64_t stride, std::vector<LookupTask> &tasks) {
  const ReceivedStream &stream =
      received.streams[static_cast<size_t>(entry.stream)];
  int64_t firstId = stream.firstIdOfPeer[peer];
  int64_t ids = stream.firstIdOfPeer[peer + 1] - firstId;
  const nsrt_slot_entry &slot = device.program.slots[entry.slot];
  LookupTask task{device.program.lookups[entry.kernel].forward,
                  device.slots[static_cast<size_t>(entry.slot)].weights(),
                  stream.ids,
                  nullptr,
                  stream.weights,
                  out,
                  entry.cols.size(),
                  stride,
                  0,
                  entry.pooled ? received.bagsOf(static_cast<int64_t>(peer))
                               : ids,
                  ids * entry.cols.size() * slot.element_bytes};
  if (slot.element_bytes == sizeof(float) && !stream.weights)
    task.single = {reinterpret_cast<const float *>(task.weights),
                   nsrt_row_stride(slot.dim, slot.element_bytes), stream.ids,
                   idBytes};
  if (entry.pooled)
    task.offsets = stream.offsets + received.firstBagOfPeer[peer];
  else
    task.ids += firstId * idBytes;
  tasks.push_back(task);
}

void addSet(const Device &device, int32_t idBytes, const StreamSet &set,
            const ReceivedSet &received, std::span<const Block> blocks,
            float *rows, const std::function<bool(const EntryLayout &)> &takes,
            std::vector<LookupTask> &tasks) {
  for (size_t peer = 0; peer < blocks.size(); ++peer) {
    const Block &block = blocks[peer];
    for (size_t e = 0; e < set.entries.size(); ++e)
      if (takes(set.entries[e]))
        addEntry(device, idBytes, set.entries[e], received, peer,
                 rows + block.begin[e], block.stride[e], tasks);
    rows += block.size;
  }
}

void chooseStreamed(std::vector<LookupTask> &tasks) {
  int64_t bytes = 0;
  for (const LookupTask &task : tasks)
    bytes += (task.end - task.begin) * task.width *
             static_cast<int64_t>(sizeof(float));
  for (LookupTask &task : tasks)
    task.isStreamed =
        bytes >= kStreamedBytes && canStream(task.out, task.width, task.stride);
}

void runAll(Device &device, const std::vector<LookupTask> &whole) {
  std::vector<LookupTask> tasks = cut(whole, device.threads.numThreads());
  device.threads.parallelFor(
      static_cast<int64_t>(tasks.size()),
      [&](int64_t i) { run(tasks[static_cast<size_t>(i)]); });
}

} // namespace neuroshard::runtime
