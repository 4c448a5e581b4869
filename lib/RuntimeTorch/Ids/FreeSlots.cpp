//===- FreeSlots.cpp - A set of slots that gives its lowest ---------------===//

#include "Ids/FreeSlots.h"

#include <algorithm>
#include <bit>

namespace neuroshard::runtime {

static constexpr size_t kBits = 64;

FreeSlots::FreeSlots(size_t numSlots) {
  size_t words = numSlots;
  do {
    words = (words + kBits - 1) / kBits;
    levels.emplace_back(std::max<size_t>(words, 1));
  } while (words > 1);
}

void FreeSlots::insert(int32_t slot) {
  auto place = static_cast<size_t>(slot);
  for (std::vector<uint64_t> &level : levels) {
    level[place / kBits] |= uint64_t{1} << (place % kBits);
    place /= kBits;
  }
  ++count;
}

int32_t FreeSlots::takeFirst() {
  size_t place = 0;
  for (size_t i = levels.size(); i-- > 0;)
    place =
        place * kBits + static_cast<size_t>(std::countr_zero(levels[i][place]));
  auto slot = static_cast<int32_t>(place);
  for (std::vector<uint64_t> &level : levels) {
    uint64_t &word = level[place / kBits];
    word &= ~(uint64_t{1} << (place % kBits));
    if (word != 0)
      break;
    place /= kBits;
  }
  --count;
  return slot;
}

void FreeSlots::clear() {
  for (std::vector<uint64_t> &level : levels)
    std::ranges::fill(level, 0);
  count = 0;
}

int64_t FreeSlots::bytes() const {
  size_t words = 0;
  for (const std::vector<uint64_t> &level : levels)
    words += level.size();
  return static_cast<int64_t>(words * sizeof(uint64_t));
}

} // namespace neuroshard::runtime
