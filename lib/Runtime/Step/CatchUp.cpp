//===- CatchUp.cpp - Rows take the steps that they have missed ------------===//
//
// By the update itself, with the last step that was taken and a gradient of 0:
// its kernel takes all steps up to that one (Runtime/KernelABI.h).
//
//===----------------------------------------------------------------------===//

#include "CatchUp.h"
#include "Steps.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Model/RowCache.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace neuroshard::runtime {
namespace {

/// All rows catch up after so many steps, so that the history stays small and
/// f32 counts it.
constexpr int64_t kMostSteps = 1 << 16;

/// Rows of a shard that catch up at once.
constexpr int64_t kRowsAtOnce = 1 << 16;

constexpr int64_t kStepBytes =
    NSRT_HISTORY_VALUES * static_cast<int64_t>(sizeof(float));

/// Null if no row of the slot has missed a step.
const StepHistory *historyOf(const Device &device, size_t slot) {
  auto found = device.histories.find(device.slots[slot].spec().table);
  return found == device.histories.end() || found->second.steps.empty()
             ? nullptr
             : &found->second;
}

void requireNoCapture(const Device &device, int32_t table) {
  if (device.backend->isCapturing())
    fail("table \"", device.manifest().tables[static_cast<size_t>(table)].name,
         "\" catches up (catch_up), which takes another number of steps each "
         "time and cannot be captured into a CUDA graph; train it without "
         "catch_up, or do not capture");
}

void write(Device &device, StepHistory &history) {
  std::vector<float> values;
  bool hasRoom = history.count() <= history.room;
  for (const StepSize &step :
       std::span(history.steps).subspan(hasRoom ? history.steps.size() - 1 : 0))
    values.insert(values.end(),
                  {step.size, step.kept, std::bit_cast<float>(step.seed)});
  if (!hasRoom) {
    history.room = std::max<int64_t>(64, 2 * history.count());
    history.values = device.buffers->take(history.room * kStepBytes);
  }
  auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  device.write(history.values.get() + history.count() * kStepBytes - bytes,
               values.data(), bytes);
}

/// What brings rows up to the last step, per slot.
std::vector<StepSize> lastSteps(const Device &device) {
  std::vector<StepSize> sizes(device.slots.size());
  for (size_t slot = 0; slot < sizes.size(); ++slot)
    if (const StepHistory *history = historyOf(device, slot)) {
      sizes[slot] = history->steps.back();
      sizes[slot].step = static_cast<float>(history->count() - 1);
      sizes[slot].history = as<const float>(history->values);
    }
  return sizes;
}

/// A gradient of 0 of every row.
Buffer makeZeros(Device &device) {
  int64_t width = 0;
  for (const Shard &shard : device.slots)
    width = std::max(width, paddedColumns(shard.spec().cols.size()));
  int64_t bytes = width * static_cast<int64_t>(sizeof(float));
  Buffer zeros = device.buffers->take(bytes);
  device.backend->clear(zeros.get(), bytes);
  return zeros;
}

void step(Device &device, std::vector<GradientPart> parts) {
  std::unique_ptr<Update> update;
  {
    PhaseTimer timer(device.figures, Phase::Sort);
    update = device.backend->prepareUpdate(std::move(parts));
  }
  PhaseTimer timer(device.figures, Phase::Update);
  update->run(lastSteps(device));
}

/// The ids of a step, with gradients of 0.
class StepParts {
public:
  StepParts(Device &device, const Routed &routed)
      : device(device), routed(routed), zeros(makeZeros(device)) {}

  void run() {
    const ExchangeLayout &layout = device.layout(routed.exchange);
    const StreamSet &owned = layout.owners[device.rank()];
    add(owned, routed.owned, 0);
    if (layout.hasReplicated)
      add(layout.locals[device.rank()], routed.local,
          static_cast<int64_t>(owned.streams.size()));
    if (!parts.empty())
      step(device, std::move(parts));
  }

private:
  void add(const StreamSet &set, const ReceivedSet &received,
           int64_t firstStream) {
    for (size_t e = 0; e < set.entries.size(); ++e) {
      const EntryLayout &entry = set.entries[e];
      if (!historyOf(device, static_cast<size_t>(entry.slot)))
        continue;
      const std::vector<PeerIds> &ids =
          received.streams[static_cast<size_t>(entry.stream)];
      // Entries of one stream may have other readers.
      int64_t stream = entry.readers.areAll() ? firstStream + entry.stream
                                              : -1 - entry.kernel;
      for (size_t peer = 0; peer < ids.size(); ++peer)
        if (entry.readers.contains(static_cast<int64_t>(peer)) &&
            ids[peer].numIds > 0)
          parts.push_back({entry.kernel, stream, ids[peer],
                           as<const float>(zeros), 0, std::nullopt,
                           received.placesOf(e, peer), routed.rows.get()});
    }
  }

  Device &device;
  const Routed &routed;
  Buffer zeros;
  std::vector<GradientPart> parts;
};

/// All rows of a slot, some at a time.
class Sweep {
public:
  Sweep(Device &device, int32_t slot, int32_t lookup)
      : device(device), shard(device.slots[static_cast<size_t>(slot)]),
        lookup(lookup), kernel(device.program.lookups[lookup]),
        zeros(makeZeros(device)) {}

  void run() {
    // Any rows of a set fit into a cache.
    int64_t most = shard.cache() ? kCacheWays : kRowsAtOnce;
    int64_t rows = shard.spec().rows.size();
    for (int64_t first = 0; first < rows; first += most)
      run(first, std::min(most, rows - first));
  }

private:
  template <typename T> Buffer upload(const std::vector<T> &values) {
    auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    Buffer buffer = device.buffers->take(bytes);
    device.write(buffer.get(), values.data(), bytes);
    return buffer;
  }
  template <typename T> Buffer uploadRange(int64_t first, int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), static_cast<T>(first));
    return upload(values);
  }

  void run(int64_t first, int64_t count) {
    bool isShort = kernel.id_bytes == sizeof(int32_t);
    Buffer ids = isShort ? uploadRange<int32_t>(first, count)
                         : uploadRange<int64_t>(first, count);
    Buffer offsets = uploadRange<int64_t>(0, count + 1);
    Buffer weights, places;
    GradientPart part{lookup, 0, {}, as<const float>(zeros), 0, std::nullopt};
    part.ids.ids = ids.get();
    part.ids.numIds = part.ids.bags = count;
    if (kernel.pooled)
      part.ids.offsets = as<const int64_t>(offsets);
    if (kernel.weighted) {
      weights = upload(std::vector<float>(static_cast<size_t>(count)));
      part.ids.weights = as<const float>(weights);
    }
    std::unique_ptr<RowsInUse> rows;
    if (shard.cache()) {
      places = device.buffers->take(count * kernel.id_bytes);
      CachedLookup cached{lookup, ids.get(), count, places.get()};
      rows = device.backend->fetchRows({&cached, 1});
      rows->wait();
      part.places = places.get();
      part.rows = rows.get();
    }
    step(device, {part});
    device.backend->finish();
  }

  Device &device;
  Shard &shard;
  int32_t lookup;
  const nsrt_lookup_entry &kernel;
  Buffer zeros;
};

/// -1: nothing looks the slot up.
int32_t lookupOf(const Device &device, int32_t slot) {
  for (int32_t i = 0; i < device.program.num_lookups; ++i)
    if (device.program.lookups[i].slot == slot)
      return i;
  return -1;
}

/// The rows of a slot have taken none of the steps to come.
void clearCounts(Shard &shard) {
  auto index = static_cast<size_t>(shard.table().states().count() - 1);
  shard.writeState(index, shard.spec().rows, [](const HostRows &part) {
    for (int64_t row = part.rows.begin; row < part.rows.end; ++row)
      *reinterpret_cast<float *>(part.row(row)) = 0;
  });
}

} // namespace

void catchUp(Device &device, const Routed &routed) {
  for (const auto &[table, history] : device.histories)
    if (!history.steps.empty()) {
      requireNoCapture(device, table);
      StepParts(device, routed).run();
      return;
    }
}

void catchUpAll(Device &device) {
  for (size_t slot = 0; slot < device.slots.size(); ++slot) {
    if (!historyOf(device, slot))
      continue;
    Shard &shard = device.slots[slot];
    requireNoCapture(device, shard.spec().table);
    finishDeferred(device);
    auto number = static_cast<int32_t>(slot);
    if (int32_t lookup = lookupOf(device, number); lookup >= 0)
      Sweep(device, number, lookup).run();
    clearCounts(shard);
  }
  for (auto &[table, history] : device.histories)
    history.steps.clear();
}

void addToHistories(Device &device, std::span<StepSize> stepSizes) {
  bool isFull = std::ranges::any_of(device.histories, [](const auto &one) {
    return one.second.count() >= kMostSteps;
  });
  if (isFull)
    catchUpAll(device);
  std::vector<int32_t> added;
  for (size_t slot = 0; slot < device.slots.size(); ++slot) {
    const Shard &shard = device.slots[slot];
    int32_t table = shard.spec().table;
    if (!shard.table().trained() || !shard.table().optimizer->catchUp ||
        device.rates.isFrozen(table))
      continue;
    requireNoCapture(device, table);
    StepHistory &history = device.histories[table];
    if (std::ranges::find(added, table) == added.end()) {
      added.push_back(table);
      history.steps.push_back(stepSizes[slot]);
      write(device, history);
    }
    stepSizes[slot].step = static_cast<float>(history.count() - 1);
    stepSizes[slot].history = as<const float>(history.values);
  }
}

} // namespace neuroshard::runtime
