//===- CpuUpdate.cpp - Sorted update of the slots of a device -------------===//
//
// Ids are numbered in the order of the parts, so that a row's gradients are
// added in the same order for every plan.
//
//===----------------------------------------------------------------------===//

#include "CpuUpdate.h"
#include "GradientOffsets.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <utility>

namespace neuroshard::runtime {

namespace {

constexpr int64_t kSortedIdsPerTask = 1 << 12;

template <typename Id>
int64_t addKeys(const GradientPart &part, int64_t firstNumber, RowKey *keys) {
  const Id *ids = reinterpret_cast<const Id *>(part.ids.ids);
  int64_t padding = part.padding.value_or(-1), count = 0;
  for (int64_t j = 0; j < part.ids.numIds; ++j)
    if (int64_t row = ids[j]; row != padding)
      keys[count++] = makeRowKey(static_cast<uint64_t>(row),
                                 static_cast<uint64_t>(firstNumber + j));
  return count;
}

} // namespace

CpuUpdate::CpuUpdate(const nsrt_program &program, std::span<const Shard> shards,
                     BufferPool &buffers, ThreadPool &threads,
                     std::vector<GradientPart> given)
    : program(program), shards(shards), buffers(buffers), threads(threads),
      parts(std::move(given)), updates(shards.size()) {
  for (size_t slot = 0; slot < updates.size(); ++slot)
    updates[slot].slot = slot;
  for (const GradientPart &part : parts)
    addSource(part,
              updates[static_cast<size_t>(program.lookups[part.lookup].slot)]);
  checkKernels();
  sort();
}

void CpuUpdate::addSource(const GradientPart &part, SlotUpdate &update) {
  update.sources.push_back({&part, update.numIds});
  update.numIds += part.ids.numIds;
  if (update.numIds >= int64_t{1} << 32)
    fail("a shard of table \"", shards[update.slot].table().name, "\" has ",
         update.numIds, " ids in one step; at most 2^32 - 1 work");
  if (part.ids.numIds > 0)
    update.gradients = update.gradients
                           ? std::min(update.gradients, part.gradients)
                           : part.gradients;
}

void CpuUpdate::checkKernels() const {
  for (const SlotUpdate &update : updates)
    if (update.numIds > 0 && !kernelsOf(update).update &&
        !kernelsOf(update).reduce)
      fail("the program was compiled for inference; it has no update kernel ",
           "for table \"", shards[update.slot].table().name, "\"");
}

void CpuUpdate::sort() {
  std::vector<std::pair<const SlotUpdate *, SortedRows *>> work;
  std::vector<SlotUpdate *> filled;
  for (SlotUpdate &update : updates) {
    if (update.numIds == 0)
      continue;
    filled.push_back(&update);
    std::vector<int64_t> streams;
    for (const Source &source : update.sources)
      streams.push_back(source.part->stream);
    auto [sorted, isNew] = sorts.try_emplace(streams);
    update.sorted = &sorted->second;
    if (isNew)
      work.push_back({&update, &sorted->second});
  }
  threads.parallelFor(static_cast<int64_t>(work.size()), [&](int64_t i) {
    auto [update, sorted] = work[static_cast<size_t>(i)];
    sortIds(*update, *sorted);
  });
  threads.parallelFor(static_cast<int64_t>(filled.size()), [&](int64_t i) {
    fillInputs(*filled[static_cast<size_t>(i)]);
  });
}

void CpuUpdate::sortIds(const SlotUpdate &update, SortedRows &sorted) const {
  Buffer keys = buffers.acquireArray<RowKey>(BufferKind::Sort, update.numIds);
  int64_t count = 0;
  for (const Source &source : update.sources) {
    bool isShort = program.lookups[source.part->lookup].id_bytes == 4;
    count += (isShort ? addKeys<int32_t>
                      : addKeys<int64_t>)(*source.part, source.firstNumber,
                                          as<RowKey>(keys) + count);
  }
  sorted = sortRows(buffers, as<RowKey>(keys), count, update.numIds,
                    shards[update.slot].spec().rows.size());
}

/// Places of gradients, and sample weights, in the order of the sort.
void CpuUpdate::fillInputs(SlotUpdate &update) const {
  const SortedRows &sorted = *update.sorted;
  const auto *order = as<const uint32_t>(sorted.order);
  Buffer ofNumber =
      buffers.acquireArray<int64_t>(BufferKind::Sort, update.numIds);
  update.gradientOffsets =
      buffers.acquireArray<int64_t>(BufferKind::Sort, update.numIds);
  for (const Source &source : update.sources) {
    const GradientPart &part = *source.part;
    if (part.ids.numIds > 0)
      fillGradientOffsets(
          part.ids, floatsBetween(update.gradients, part.gradients),
          part.stride, as<int64_t>(ofNumber) + source.firstNumber);
  }
  for (int64_t k = 0; k < sorted.numIds; ++k)
    as<int64_t>(update.gradientOffsets)[k] = as<int64_t>(ofNumber)[order[k]];
  if (kernelsOf(update).weighted)
    fillSampleWeights(update, as<float>(ofNumber));
  if (shards[update.slot].cache())
    placeRows(update, as<int64_t>(ofNumber));
}

template <typename Id>
static void widen(const std::byte *places, int64_t count, int64_t *to) {
  std::copy_n(reinterpret_cast<const Id *>(places), count, to);
}

/// The rows are in use since they were looked up, and are about to change. The
/// first id of each tells its place. `ofNumber` has room for all ids.
void CpuUpdate::placeRows(SlotUpdate &update, int64_t *ofNumber) const {
  for (const Source &source : update.sources) {
    const GradientPart &part = *source.part;
    if (part.ids.numIds == 0)
      continue;
    if (!part.places)
      fail("the update of table \"", shards[update.slot].table().name,
           "\" is of a step whose rows were not looked up");
    bool isShort = program.lookups[part.lookup].id_bytes == 4;
    (isShort ? widen<int32_t> : widen<int64_t>)(part.places, part.ids.numIds,
                                                ofNumber + source.firstNumber);
  }
  const SortedRows &sorted = *update.sorted;
  const auto *order = as<const uint32_t>(sorted.order);
  const auto *segments = as<const int64_t>(sorted.segments);
  update.places =
      buffers.acquireArray<int64_t>(BufferKind::Sort, update.numIds);
  auto *places = as<int64_t>(update.places);
  for (int64_t i = 0; i < sorted.numRows; ++i)
    places[i] = ofNumber[order[segments[i]]];
  shards[update.slot].cache()->markChanged(
      {places, static_cast<size_t>(sorted.numRows)});
}

void CpuUpdate::fillSampleWeights(SlotUpdate &update, float *ofNumber) const {
  const SortedRows &sorted = *update.sorted;
  const auto *order = as<const uint32_t>(sorted.order);
  update.sampleWeights =
      buffers.acquireArray<float>(BufferKind::Sort, update.numIds);
  for (const Source &source : update.sources) {
    const PeerIds &ids = source.part->ids;
    if (ids.weights)
      std::copy_n(ids.weights, ids.numIds, ofNumber + source.firstNumber);
    else
      std::fill_n(ofNumber + source.firstNumber, ids.numIds, 1.0f);
  }
  for (int64_t k = 0; k < sorted.numIds; ++k)
    as<float>(update.sampleWeights)[k] = ofNumber[order[k]];
}

void CpuUpdate::makeTasks() {
  for (SlotUpdate &update : updates) {
    if (update.numIds == 0)
      continue;
    int64_t rows = update.sorted->numRows;
    if (kernelsOf(update).reduce) {
      update.reduced = buffers.acquireArray<float>(BufferKind::Norms,
                                                   rows * strideOf(update));
      update.norms = buffers.acquireArray<float>(BufferKind::Norms,
                                                 rows * normsOf(update));
    }
    if (rows == 0)
      continue;
    int64_t count =
        std::clamp<int64_t>(update.sorted->numIds / kSortedIdsPerTask, 1, rows);
    for (int64_t i = 0; i < count; ++i)
      tasks.push_back({&update, rows * i / count, rows * (i + 1) / count});
  }
}

int64_t CpuUpdate::normsOf(const SlotUpdate &update) const {
  return shards[update.slot].table().normsPerRow();
}

int64_t CpuUpdate::strideOf(const SlotUpdate &update) const {
  return nsrt_row_stride(kernelsOf(update).dim, sizeof(float));
}

void CpuUpdate::run(std::span<const StepSize> sizes) {
  stepSizes.assign(sizes.begin(), sizes.end());
  makeTasks();
  threads.parallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    runFirstPhase(tasks[static_cast<size_t>(i)]);
  });
}

/// Updates one-phase slots; reduces the gradients of two-phase ones.
void CpuUpdate::runFirstPhase(const Task &task) const {
  const SlotUpdate &update = *task.update;
  const nsrt_slot_entry &kernels = kernelsOf(update);
  const Shard &shard = shards[update.slot];
  const auto *segments = as<const int64_t>(update.sorted->segments);
  const auto *offsets = as<const int64_t>(update.gradientOffsets);
  const auto *weights = as<const float>(update.sampleWeights);
  const StepSize &size = stepSizes[update.slot];
  if (kernels.update)
    kernels.update(shard.weights(), shard.state(0), shard.state(1),
                   shard.state(2), rowsOf(update), segments, offsets, weights,
                   update.gradients, size.size, size.kept, size.seed,
                   size.first, size.second, size.step, size.history, task.begin,
                   task.end);
  else
    kernels.reduce(shard.weights(), shard.state(0), shard.state(1),
                   shard.state(2), rowsOf(update), segments, offsets, weights,
                   update.gradients, size.first, size.second,
                   as<float>(update.reduced), as<float>(update.norms),
                   task.begin, task.end);
}

void CpuUpdate::runSecondPhase(const Task &task) const {
  const SlotUpdate &update = *task.update;
  const Shard &shard = shards[update.slot];
  const StepSize &size = stepSizes[update.slot];
  kernelsOf(update).apply(
      shard.weights(), shard.state(0), shard.state(1), shard.state(2),
      rowsOf(update), as<const float>(update.reduced),
      as<const float>(update.norms), size.size, size.kept, size.seed,
      size.first, size.second, size.step, task.begin, task.end);
}

Range CpuUpdate::distinctRows(int32_t slot, Range rows, RowNumber) const {
  const SlotUpdate &update = updateOf(slot);
  if (!update.sorted)
    return {0, 0};
  const auto *first = as<const int64_t>(update.sorted->rows);
  const auto *last = first + update.sorted->numRows;
  return {std::lower_bound(first, last, rows.begin) - first,
          std::lower_bound(first, last, rows.end) - first};
}

const float *CpuUpdate::norms(int32_t slot) const {
  return as<const float>(updateOf(slot).norms);
}

Buffer CpuUpdate::addUpNorms(const SlotUpdate &update,
                             std::span<const NormTerm *const> terms) const {
  int64_t perRow = normsOf(update), count = update.sorted->numRows * perRow;
  Buffer total = buffers.acquireArray<float>(BufferKind::Norms, count);
  std::fill_n(as<float>(total), count, 0.0f);
  for (const NormTerm *term : terms) {
    float *sums = as<float>(total) + term->rows.begin * perRow;
    for (int64_t i = 0; i < term->rows.size() * perRow; ++i)
      sums[i] += term->norms[i];
  }
  return total;
}

void CpuUpdate::finish(std::span<const NormTerm> terms) {
  std::vector<std::vector<const NormTerm *>> termsOf(updates.size());
  for (const NormTerm &term : terms)
    termsOf[static_cast<size_t>(term.slot)].push_back(&term);
  std::vector<Buffer> totals(updates.size());
  for (size_t slot = 0; slot < updates.size(); ++slot)
    if (!termsOf[slot].empty())
      totals[slot] = addUpNorms(updates[slot], termsOf[slot]);
  // Only after all sums are done, since they read these norms.
  for (size_t slot = 0; slot < updates.size(); ++slot)
    if (totals[slot])
      updates[slot].norms = totals[slot];
  std::erase_if(tasks, [&](const Task &task) {
    return kernelsOf(*task.update).update != nullptr;
  });
  threads.parallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    runSecondPhase(tasks[static_cast<size_t>(i)]);
  });
}

} // namespace neuroshard::runtime
