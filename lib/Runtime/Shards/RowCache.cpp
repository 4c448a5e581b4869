//===- RowCache.cpp - Cached rows of a shard in a lower tier --------------===//

#include "RowCache.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <string>
#include <utility>

namespace neuroshard::runtime {

/// Ids that are looked for together, while what is known of their rows stays in
/// the first-level cache.
static constexpr int64_t kIdsAtATime = 256;

RowCache::RowCache(const ShardSpec &shard, const TableSpec &table,
                   std::unique_ptr<RowStore> rowStore, IoQueue &queue,
                   const std::shared_ptr<DeviceMemory> &memory)
    : spec(shard.cache), store(std::move(rowStore)), io(queue),
      index(shard.cache, shard.rows.size()) {
  int64_t width = shard.cols.size(), offset = 0;
  // Addresses for all that may spill, which takes memory when it does.
  int64_t places = shard.cache.rows + shard.rows.size();
  auto add = [&](int64_t bytes) {
    arrays.push_back(PageBlock::reserve(places * bytes, memory));
    parts.push_back({offset, bytes, arrays.back().data()});
    offset += bytes;
  };
  add(paddedRowBytes(width, table.elementType));
  OptimizerStates states = table.states();
  for (int i = 0; i < states.perElement; ++i)
    add(paddedRowBytes(width, ElementType::F32));
  for (int i = 0; i < states.perRow; ++i)
    add(elementBytes(ElementType::F32));
  giveRoom();
}

/// Memory for the places that rows have had.
void RowCache::giveRoom() {
  for (size_t i = 0; i < arrays.size(); ++i)
    arrays[i].commit(index.numPlaces() * parts[i].bytes);
}

void RowCache::finish() noexcept {
  try {
    io.wait(lastJob);
  } catch (const RuntimeError &) {
    // Whoever waited for rows was told of it.
  }
}

float *RowCache::state(size_t number) const {
  return reinterpret_cast<float *>(arrays[number + 1].data());
}

int64_t RowCache::start(IoDirection direction, std::vector<CachedRow> moved) {
  if (moved.empty())
    return lastJob;
  RowCopies::Point point = copies ? copies->now() : nullptr;
  return io.submit(
      [this, direction, rows = std::move(moved), point](RowIo &rowIo) {
        if (copies)
          copyStaged(rowIo, direction, rows, point);
        else
          store->transfer(rowIo, direction, rows, parts);
      });
}

/// By way of the staging memory of the device, in pieces that have room there.
void RowCache::copyStaged(RowIo &rowIo, IoDirection direction,
                          std::span<const CachedRow> moved,
                          const RowCopies::Point &point) const {
  int64_t bytesOfRow = 0;
  for (const RecordPart &part : parts)
    bytesOfRow += part.bytes;
  std::span<std::byte> room = copies->staging(bytesOfRow);
  size_t most = room.size() / static_cast<size_t>(bytesOfRow);
  while (!moved.empty()) {
    std::span<const CachedRow> piece =
        moved.first(std::min(most, moved.size()));
    moved = moved.subspan(piece.size());
    std::vector<CachedRow> staged;
    std::vector<int64_t> places;
    for (const CachedRow &row : piece) {
      staged.push_back({row.row, static_cast<int64_t>(staged.size())});
      places.push_back(row.place);
    }
    std::vector<RecordPart> stagedParts = parts;
    std::byte *next = room.data();
    for (RecordPart &part : stagedParts) {
      part.first = next;
      next += part.bytes * std::ssize(piece);
    }
    auto copyArrays = [&](auto copy) {
      for (size_t i = 0; i < parts.size(); ++i)
        (copies->*copy)({parts[i].first, parts[i].bytes, places},
                        stagedParts[i].first, point);
    };
    if (direction == IoDirection::Write)
      copyArrays(&RowCopies::read);
    store->transfer(rowIo, direction, staged, stagedParts);
    if (direction == IoDirection::Read)
      copyArrays(&RowCopies::write);
  }
}

template <typename Id>
void RowCache::find(std::span<const IdRun> runs, size_t number,
                    CacheBatch &batch) {
  const IdRun &run = runs[number];
  const auto *ids = reinterpret_cast<const Id *>(run.ids);
  auto *places = reinterpret_cast<Id *>(run.places);
  std::array<int64_t, kIdsAtATime> rows{}, found{};
  for (int64_t begin = 0; begin < run.count; begin += kIdsAtATime) {
    int64_t count = std::min(kIdsAtATime, run.count - begin);
    std::copy_n(ids + begin, count, rows.begin());
    index.find({rows.data(), static_cast<size_t>(count)}, found.data(), batch);
    for (int64_t j = 0; j < count; ++j) {
      auto at = static_cast<size_t>(j);
      if (found[at] < 0)
        missing.push_back({number, begin + j, rows[at]});
      places[begin + j] = static_cast<Id>(found[at]);
    }
  }
}

void RowCache::admitMissing(std::span<const IdRun> runs, CacheBatch &batch) {
  for (const Missing &one : missing) {
    const IdRun &run = runs[one.run];
    int64_t place = index.admit(one.row, batch);
    if (run.idBytes == 8)
      reinterpret_cast<int64_t *>(run.places)[one.id] = place;
    else if (place <= std::numeric_limits<int32_t>::max())
      reinterpret_cast<int32_t *>(run.places)[one.id] =
          static_cast<int32_t>(place);
    else
      fail("a batch uses more rows of a shard with a cache than its ids can "
           "number");
  }
}

CacheBatch RowCache::fetch(std::span<const IdRun> runs) {
  std::lock_guard lock(mutex);
  if (isExposed)
    readAgain();
  try {
    return takeRows(runs);
  } catch (const std::exception &error) {
    failLater(error); // some of its rows may have places, and do not come
    throw;
  }
}

CacheBatch RowCache::takeRows(std::span<const IdRun> runs) {
  index.beginBatch();
  missing.clear();
  CacheBatch batch;
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i].idBytes == 4)
      find<int32_t>(runs, i, batch);
    else
      find<int64_t>(runs, i, batch);
  admitMissing(runs, batch);
  giveRoom();
  sums.batches += 1;
  sums.rows += static_cast<int64_t>(batch.places.size());
  sums.hits += batch.hits();
  sums.written += static_cast<int64_t>(batch.written.size());
  sums.mostSpilled = std::max(sums.mostSpilled, index.numSpilled());
  lastJob = start(IoDirection::Write, batch.written);
  lastJob = start(IoDirection::Read, batch.fetched);
  batch.job = lastJob;
  return batch;
}

/// What the caller of expose() has written. The mutex must be held.
void RowCache::readAgain() {
  isExposed = false;
  lastRead = lastJob = start(IoDirection::Read, index.dropUnused());
}

void RowCache::wait(const CacheBatch &batch) {
  auto start = std::chrono::steady_clock::now();
  settle();
  io.wait(batch.job);
  auto waited = std::chrono::steady_clock::now() - start;
  std::lock_guard lock(mutex);
  sums.waitNanoseconds +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count();
}

/// Waits for rows that must be read again, before rows in use are read or
/// changed.
void RowCache::settle() {
  int64_t job = 0;
  {
    std::lock_guard lock(mutex);
    if (isExposed)
      readAgain();
    job = lastRead;
  }
  io.wait(job);
}

void RowCache::markChanged(std::span<const int64_t> places) {
  settle();
  std::lock_guard lock(mutex);
  for (int64_t place : places)
    index.markChanged(place);
}

void RowCache::release(const CacheBatch &batch) {
  std::lock_guard lock(mutex);
  try {
    std::vector<CachedRow> left = index.release(batch);
    sums.written += static_cast<int64_t>(left.size());
    lastJob = start(IoDirection::Write, std::move(left));
  } catch (const std::exception &error) {
    failLater(error);
  }
}

/// Lets all later waits throw what went wrong: rows may be lost.
void RowCache::failLater(const std::exception &error) {
  io.submit([text = std::string(error.what())](RowIo &) { fail(text); });
}

void RowCache::flush() {
  int64_t job = 0;
  {
    std::lock_guard lock(mutex);
    std::vector<CachedRow> changed = index.takeChanged();
    sums.written += static_cast<int64_t>(changed.size());
    lastJob = job = start(IoDirection::Write, std::move(changed));
  }
  io.wait(job);
}

void RowCache::expose() {
  flush();
  std::lock_guard lock(mutex);
  isExposed = true;
}

CacheFigures RowCache::figures() const {
  std::lock_guard lock(mutex);
  return sums;
}

} // namespace neuroshard::runtime
