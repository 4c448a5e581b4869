//===- IdGenerator.cpp - Random ids with a given reuse histogram ----------===//

#include "neuroshard/Collect/IdGenerator.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace neuroshard;

namespace {

/// Bins of ids seen once or twice.
constexpr int kColdBins = 2;

/// The finalizer of splitmix64.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

} // namespace

Permutation::Permutation(uint64_t size, uint64_t key) : size(size) {
  for (size_t i = 0; i < keys.size(); ++i)
    keys[i] = mix(key + i);
  unsigned bits =
      size > 1 ? static_cast<unsigned>(std::bit_width(size - 1)) : 1;
  halfBits = (bits + 1) / 2;
}

uint64_t Permutation::operator()(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << halfBits) - 1;
  do {
    uint64_t left = value >> halfBits, right = value & mask;
    for (uint64_t key : keys) {
      uint64_t hashed = (right ^ key) * 0xff51afd7ed558ccdu;
      uint64_t next = left ^ ((hashed ^ (hashed >> 33)) >> 7 & mask);
      left = right;
      right = next;
    }
    value = left << halfBits | right;
  } while (value >= size);
  return value;
}

IdGenerator::IdGenerator(const AccessStatistics *access, double lookupsMeasured,
                         int64_t rows, uint64_t seed)
    : rows(static_cast<uint64_t>(std::max<int64_t>(rows, 1))), seed(seed),
      order(1, seed), place(this->rows, mix(seed ^ 1)) {
  if (!access)
    return;
  for (size_t i = 0; i < bins.size(); ++i) {
    bins[i].low = static_cast<uint64_t>(reuseRange(i).least);
    bins[i].high = static_cast<uint64_t>(reuseRange(i).most);
  }
  // Bins of less than half an id stay empty, the others make up for them.
  double ids = lookupsMeasured;
  for (int round = 0; round < 20; ++round) {
    fillBins(*access, ids);
    ids *=
        lookupsMeasured / static_cast<double>(std::max<uint64_t>(lookups, 1));
  }
  uint64_t rank = bins.back().firstRank + bins.back().ids;
  coldIds = bins[kColdBins].firstRank;
  // More cold ids than rows to take them from: they come back.
  if (rank > this->rows)
    coldIds = 0;
  hotIds = rank - coldIds;
  beginEpoch();
}

void IdGenerator::fillBins(const AccessStatistics &access, double ids) {
  uint64_t rank = 0;
  lookups = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    Bin &bin = bins[i];
    bin.ids = static_cast<uint64_t>(std::llround(ids * access.reuse[i]));
    bin.firstLookup = lookups;
    bin.firstRank = rank;
    lookups += bin.ids / 2 * (bin.low + bin.high) + (bin.ids % 2 ? bin.low : 0);
    rank += bin.ids;
  }
}

void IdGenerator::beginEpoch() {
  order = Permutation(std::max<uint64_t>(lookups, 1), mix(seed + 2 + epoch));
  position = 0;
}

uint64_t IdGenerator::rankOf(uint64_t lookup) const {
  size_t i = bins.size() - 1;
  while (bins[i].firstLookup > lookup || bins[i].ids == 0)
    --i;
  const Bin &bin = bins[i];
  uint64_t inBin = lookup - bin.firstLookup;
  uint64_t pair = inBin / (bin.low + bin.high);
  uint64_t second = inBin % (bin.low + bin.high) >= bin.low ? 1 : 0;
  return bin.firstRank + 2 * pair + second;
}

int64_t IdGenerator::next() {
  if (lookups == 0)
    return static_cast<int64_t>(mix(seed + ++position) % rows);
  if (position == lookups) {
    ++epoch;
    beginEpoch();
  }
  uint64_t rank = rankOf(order(position++));
  if (rank < coldIds)
    rank = hotIds + (rank + epoch * coldIds) % (rows - hotIds);
  else
    rank -= coldIds;
  return static_cast<int64_t>(place(rank % rows));
}
