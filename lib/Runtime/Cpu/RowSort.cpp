//===- RowSort.cpp - Groups the ids of a step by row ----------------------===//
//
// A radix sort from the lowest digit of the row. All digits have about the same
// number of bits: counting few values is cheap. Skips digits that are equal in
// all keys.
//
//===----------------------------------------------------------------------===//

#include "RowSort.h"

#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kMostBits = 11;

/// Bits [shift, shift + bits) of keys.
struct Digit {
  int64_t shift, bits;

  uint64_t operator()(RowKey key) const {
    return key >> shift & ((uint64_t{1} << bits) - 1);
  }
};

/// Sorts by a digit. Returns false, and writes nothing, if all keys have the
/// same.
bool sortDigit(const RowKey *from, RowKey *to, int64_t count, Digit digit) {
  std::array<int64_t, size_t{1} << kMostBits> all;
  std::span<int64_t> next(all.data(), size_t{1} << digit.bits);
  std::fill(next.begin(), next.end(), 0);
  for (int64_t i = 0; i < count; ++i)
    ++next[digit(from[i])];
  if (next[digit(from[0])] == count)
    return false;
  int64_t first = 0;
  for (int64_t &position : next)
    first += std::exchange(position, first);
  for (int64_t i = 0; i < count; ++i)
    to[next[digit(from[i])]++] = from[i];
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
  int64_t digits = ceilDivide(rowBits, kMostBits);
  for (int64_t d = 0, bits = 0; count > 0 && d < digits; ++d) {
    int64_t end = ceilDivide(rowBits * (d + 1), digits);
    if (sortDigit(from, to, count, {32 + bits, end - bits}))
      std::swap(from, to);
    bits = end;
  }

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
