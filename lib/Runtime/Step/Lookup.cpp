//===- Lookup.cpp - Runs the forward kernels ------------------------------===//
//
// One parallel launch over chunks of bags of all entries. Kernels write into
// the layout in which results travel; or straight into the caller's memory,
// once it is known, for results that need no exchange and no sum over shards
// (direct results).
//
//===----------------------------------------------------------------------===//

#include "Exchange/Blocks.h"
#include "Exchange/IdExchange.h"
#include "Memory/StreamingCopy.h"
#include "Steps.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

/// Bytes of rows that one task reads: enough to be worth a task, since each
/// waits for its first rows; few enough that all threads end at about the same
/// time.
constexpr int64_t kLeastBytes = 1 << 16, kMostBytes = 1 << 19;
constexpr int64_t kTasksPerThread = 16;

/// Bags (or ids, if unpooled) of one entry and one peer.
struct Task {
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

/// Cuts tasks into tasks that read about the same number of bytes each.
std::vector<Task> cut(const std::vector<Task> &tasks, int threads) {
  int64_t total = 0;
  for (const Task &task : tasks)
    total += task.bytes;
  int64_t bytes =
      std::clamp(total / (threads * kTasksPerThread), kLeastBytes, kMostBytes);
  std::vector<Task> all;
  for (const Task &whole : tasks) {
    int64_t items = whole.end;
    int64_t chunks = std::clamp<int64_t>(whole.bytes / bytes, 1,
                                         std::max<int64_t>(items, 1));
    for (int64_t i = 0; i < chunks; ++i) {
      Task task = whole;
      task.begin = items * i / chunks;
      task.end = items * (i + 1) / chunks;
      if (task.begin < task.end)
        all.push_back(task);
    }
  }
  return all;
}

/// Adds the task of one entry for the bags of one peer.
void addEntry(const Device &device, int32_t idBytes, const EntryLayout &entry,
              const ReceivedSet &received, size_t peer, float *out,
              int64_t stride, std::vector<Task> &tasks) {
  const ReceivedStream &stream =
      received.streams[static_cast<size_t>(entry.stream)];
  int64_t firstId = stream.firstIdOfPeer[peer];
  int64_t ids = stream.firstIdOfPeer[peer + 1] - firstId;
  const nsrt_slot_entry &slot = device.program.slots[entry.slot];
  Task task{device.program.lookups[entry.kernel].forward,
            device.slots[static_cast<size_t>(entry.slot)].weights(),
            stream.ids,
            nullptr,
            stream.weights,
            out,
            entry.cols.size(),
            stride,
            0,
            entry.pooled ? received.bagsOf(static_cast<int64_t>(peer)) : ids,
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

/// Adds the tasks of those entries of a set for which `takes(entry)`. `blocks`
/// are per peer and lie one after the other from `rows` on.
template <typename Takes>
void addSet(const Device &device, int32_t idBytes, const StreamSet &set,
            const ReceivedSet &received, std::span<const Block> blocks,
            float *rows, const Takes &takes, std::vector<Task> &tasks) {
  for (size_t peer = 0; peer < blocks.size(); ++peer) {
    const Block &block = blocks[peer];
    for (size_t e = 0; e < set.entries.size(); ++e)
      if (takes(set.entries[e]))
        addEntry(device, idBytes, set.entries[e], received, peer,
                 rows + block.begin[e], block.stride[e], tasks);
    rows += block.size;
  }
}

/// Runs the kernel and divides means. `out` is the row of bag 0, `stride` the
/// floats between rows.
void runInto(const Task &task, float *out, int64_t stride) {
  task.kernel(task.weights, task.ids, task.offsets, task.sampleWeights, out,
              stride, task.begin, task.end);
  for (int64_t b = task.begin; task.divisors && b < task.end; ++b)
    divideRow(out + b * stride, task.width, task.divisors[b]);
}

/// Sums rows in memory of the thread, which stays in its cache, and streams
/// them to the result.
void runStreamed(const Task &task) {
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
bool isCopy(const Task &task) {
  if (!task.single.weights || task.divisors)
    return false;
  int64_t other = 0; // no early exit, to vectorise
  for (int64_t b = task.begin; b < task.end; ++b)
    other |= (task.offsets[b + 1] - task.offsets[b]) ^ 1;
  return other == 0;
}

void run(const Task &task) {
  if (task.isStreamed && isCopy(task))
    streamSingleRows(task.single, task.offsets[task.begin],
                     task.offsets[task.end], task.width,
                     task.out + task.begin * task.stride, task.stride);
  else if (task.isStreamed)
    runStreamed(task);
  else
    runInto(task, task.out, task.stride);
}

/// Lets tasks stream if their results are large together.
void chooseStreamed(std::vector<Task> &tasks) {
  int64_t bytes = 0;
  for (const Task &task : tasks)
    bytes += (task.end - task.begin) * task.width *
             static_cast<int64_t>(sizeof(float));
  for (Task &task : tasks)
    task.isStreamed =
        bytes >= kStreamedBytes && canStream(task.out, task.width, task.stride);
}

void runAll(Device &device, const std::vector<Task> &whole) {
  std::vector<Task> tasks = cut(whole, device.threads.numThreads());
  device.threads.parallelFor(
      static_cast<int64_t>(tasks.size()),
      [&](int64_t i) { run(tasks[static_cast<size_t>(i)]); });
}

/// Whether kernels can write a result into the caller's memory: a pooled f32
/// result on a single device, each column of which comes from one shard.
bool isDirect(const Device &device, const Routed &routed, int32_t lookup) {
  const ExchangeLookup &spec = device.manifest()
                                   .exchanges[routed.exchange]
                                   .lookups[static_cast<size_t>(lookup)];
  const std::vector<Segment> &segments =
      device.layout(routed.exchange)
          .results[static_cast<size_t>(lookup)]
          .segments;
  return device.numDevices() == 1 && spec.pooled() &&
         spec.resultType == ElementType::F32 && !segments.empty() &&
         std::all_of(
             segments.begin(), segments.end(),
             [](const Segment &segment) { return segment.parts.size() == 1; });
}

/// Adds the tasks of a direct result, [bags, dim] at `out`.
void addDirect(const Device &device, const Routed &routed, size_t lookup,
               float *out, std::vector<Task> &tasks) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  int64_t dim = device.manifest().tables[spec.lookups[lookup].table].dim;
  bool isMean = spec.lookups[lookup].pooling == Pooling::Mean;
  size_t first = tasks.size();
  for (const PartialColumns &part : layout.results[lookup].parts)
    addEntry(device, spec.idBytes(),
             layout.owners[0].entries[static_cast<size_t>(part.entry)],
             routed.owned, 0, out + part.cols.begin, dim, tasks);
  for (size_t i = first; isMean && i < tasks.size(); ++i)
    tasks[i].divisors = as<const float>(routed.lookups[lookup].bagCounts);
}

} // namespace

void lookUp(Device &device, Routed &routed, Partials &partials) {
  receiveIds(device, routed);
  PhaseTimer timer(device.figures, Phase::Lookup);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const StreamSet &owned = layout.owners[device.rank()];
  const StreamSet &local = layout.locals[device.rank()];
  int32_t idBytes = device.manifest().exchanges[routed.exchange].idBytes();

  partials.sendBlocks = makeOwnerBlocks(owned, routed.owned);
  partials.send = device.buffers->acquireArray<float>(
      BufferKind::Partials, totalFloats(partials.sendBlocks));
  std::vector<Task> tasks;
  auto now = [&](const EntryLayout &entry) {
    bool direct = isDirect(device, routed, entry.lookup);
    partials.deferred |= direct;
    return !direct;
  };
  addSet(device, idBytes, owned, routed.owned, partials.sendBlocks,
         as<float>(partials.send), now, tasks);
  if (layout.hasReplicated) {
    partials.localBlock = makeLocalBlock(device, routed);
    partials.local = device.buffers->acquireArray<float>(
        BufferKind::Partials, partials.localBlock.size);
    partials.localRows = as<float>(partials.local);
    addSet(device, idBytes, local, routed.local, {&partials.localBlock, 1},
           partials.localRows, now, tasks);
  }
  runAll(device, tasks);
  if (partials.deferred)
    device.deferred.push_back({&routed, &partials});
}

std::vector<bool> writeDirectly(Device &device, const Routed &routed,
                                const Partials &partials,
                                std::span<const ResultTarget> targets) {
  std::vector<bool> written(targets.size());
  if (!partials.deferred)
    return written;
  PhaseTimer timer(device.figures, Phase::Lookup);
  std::vector<Task> tasks;
  for (size_t i = 0; i < targets.size(); ++i) {
    const ResultTarget &target = targets[i];
    if (target.type != ElementType::F32 ||
        !isDirect(device, routed, static_cast<int32_t>(target.lookup)))
      continue;
    addDirect(device, routed, static_cast<size_t>(target.lookup),
              reinterpret_cast<float *>(target.out), tasks);
    written[i] = true;
  }
  chooseStreamed(tasks);
  runAll(device, tasks);
  return written;
}

void finishDeferred(Device &device) {
  std::vector<Task> tasks;
  for (auto [routed, partials] : device.deferred) {
    const ExchangeLayout &layout = device.layout(routed->exchange);
    addSet(
        device, device.manifest().exchanges[routed->exchange].idBytes(),
        layout.owners[0], routed->owned, partials->sendBlocks,
        as<float>(partials->send),
        [routed = routed, &device](const EntryLayout &entry) {
          return isDirect(device, *routed, entry.lookup);
        },
        tasks);
    partials->deferred = false;
  }
  device.deferred.clear();
  PhaseTimer timer(device.figures, Phase::Lookup);
  runAll(device, tasks);
}

} // namespace neuroshard::runtime
