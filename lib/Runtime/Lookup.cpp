//===- Lookup.cpp - Runs the forward kernels ------------------------------===//
//
// One parallel launch over chunks of bags of all entries. Results go straight
// into the layout in which they travel.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr int64_t idsPerChunk = 1 << 12;

/// Bags (or ids, if unpooled) of one entry and one peer.
struct Task {
  nsrt_lookup_kernel kernel;
  const std::byte *weights;
  const std::byte *ids;
  const int64_t *offsets;
  const float *sampleWeights;
  float *out;
  int64_t stride;
  int64_t begin;
  int64_t end;
};

/// Cuts an entry's work for one peer into tasks of about the same number of
/// ids.
void addTasks(const Task &whole, int64_t items, int64_t ids,
              std::vector<Task> &tasks) {
  int64_t chunks =
      std::clamp<int64_t>(ids / idsPerChunk, 1, std::max<int64_t>(items, 1));
  for (int64_t i = 0; i < chunks; ++i) {
    Task task = whole;
    task.begin = items * i / chunks;
    task.end = items * (i + 1) / chunks;
    if (task.begin < task.end)
      tasks.push_back(task);
  }
}

/// `blocks` and their first rows `rows` are per peer of the set.
void addSet(const Device &device, int32_t idBytes, const StreamSet &set,
            const ReceivedSet &received, std::span<const Block> blocks,
            float *rows, std::vector<Task> &tasks) {
  for (int64_t peer = 0; peer < received.numPeers(); ++peer) {
    const Block &block = blocks[size_t(peer)];
    for (size_t e = 0; e < set.entries.size(); ++e) {
      const EntryLayout &entry = set.entries[e];
      const ReceivedStream &stream = received.streams[size_t(entry.stream)];
      int64_t firstId = stream.firstIdOfPeer[size_t(peer)];
      int64_t ids = stream.firstIdOfPeer[size_t(peer) + 1] - firstId;
      Task task{device.program.lookups[entry.kernel].forward,
                device.slots[size_t(entry.slot)].weights(),
                stream.ids,
                nullptr,
                stream.weights,
                rows + block.begin[e],
                block.stride[e],
                0,
                0};
      if (entry.pooled)
        task.offsets = stream.offsets + received.firstBagOfPeer[size_t(peer)];
      else
        task.ids += firstId * idBytes;
      addTasks(task, entry.pooled ? received.bagsOf(peer) : ids, ids, tasks);
    }
    rows += block.size;
  }
}

} // namespace

void lookUp(Device &device, Routed &routed, Partials &partials) {
  receiveIds(device, routed);
  PhaseTimer timer(device.figures, Phase::Lookup);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const StreamSet &owned = layout.owners[device.rank()];
  const StreamSet &local = layout.locals[device.rank()];
  int32_t idBytes = device.manifest().exchanges[routed.exchange].idBytes;

  partials.sendBlocks = makeOwnerBlocks(owned, routed.owned);
  partials.send =
      device.buffers->acquireArray<float>(totalFloats(partials.sendBlocks));
  std::vector<Task> tasks;
  addSet(device, idBytes, owned, routed.owned, partials.sendBlocks,
         as<float>(partials.send), tasks);
  if (layout.hasReplicated) {
    partials.localBlock = makeLocalBlock(device, routed);
    partials.local =
        device.buffers->acquireArray<float>(partials.localBlock.size);
    partials.localRows = as<float>(partials.local);
    addSet(device, idBytes, local, routed.local, {&partials.localBlock, 1},
           partials.localRows, tasks);
  }
  device.threads.parallelFor(int64_t(tasks.size()), [&](int64_t i) {
    const Task &task = tasks[size_t(i)];
    task.kernel(task.weights, task.ids, task.offsets, task.sampleWeights,
                task.out, task.stride, task.begin, task.end);
  });
}

} // namespace neuroshard::runtime
