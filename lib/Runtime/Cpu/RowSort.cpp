//===- RowSort.cpp - Groups the ids of a step by row ----------------------===//
//
// A radix sort from the lowest digit of the row. Skips digits that are equal in
// all keys.
//
//===----------------------------------------------------------------------===//

#include "RowSort.h"

#include <array>
#include <bit>
#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr int kDigitBits = 11;
constexpr size_t kNumDigits = size_t{1} << kDigitBits;

uint64_t digitOf(RowKey key, int shift) {
  return key >> shift & (kNumDigits - 1);
}

/// Sorts by the digit at `shift`. Returns false, and writes nothing, if all
/// keys have the same digit.
bool sortDigit(const RowKey *from, RowKey *to, int64_t count, int shift) {
  std::array<int64_t, kNumDigits> next{};
  for (int64_t i = 0; i < count; ++i)
    ++next[digitOf(from[i], shift)];
  if (next[digitOf(from[0], shift)] == count)
    return false;
  int64_t first = 0;
  for (int64_t &position : next)
    first += std::exchange(position, first);
  for (int64_t i = 0; i < count; ++i)
    to[next[digitOf(from[i], shift)]++] = from[i];
  return true;
}

} // namespace

SortedRows sortRows(BufferPool &buffers, RowKey *keys, int64_t count,
                    int64_t room, int64_t numRows) {
  SortedRows sorted;
  sorted.numIds = count;
  sorted.rows = buffers.acquireArray<int64_t>(BufferKind::Sort, room);
  sorted.segments = buffers.acquireArray<int64_t>(BufferKind::Sort, room + 1);
  sorted.order = buffers.acquireArray<uint32_t>(BufferKind::Sort, room);

  Buffer other = buffers.acquireArray<RowKey>(BufferKind::Sort, room);
  RowKey *from = keys;
  RowKey *to = as<RowKey>(other);
  int rowBits = std::bit_width(static_cast<uint64_t>(numRows - 1));
  for (int bit = 0; count > 0 && bit < rowBits; bit += kDigitBits)
    if (sortDigit(from, to, count, 32 + bit))
      std::swap(from, to);

  auto *rows = as<int64_t>(sorted.rows);
  auto *segments = as<int64_t>(sorted.segments);
  auto *order = as<uint32_t>(sorted.order);
  for (int64_t i = 0; i < count; ++i) {
    order[i] = static_cast<uint32_t>(from[i]);
    if (i > 0 && from[i] >> 32 == from[i - 1] >> 32)
      continue;
    rows[sorted.numRows] = static_cast<int64_t>(from[i] >> 32);
    segments[sorted.numRows++] = i;
  }
  segments[sorted.numRows] = count;
  return sorted;
}

} // namespace neuroshard::runtime
