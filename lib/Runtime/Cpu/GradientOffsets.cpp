//===- GradientOffsets.cpp - Offsets of the gradients of ids --------------===//

#include "GradientOffsets.h"

#include <algorithm>

namespace neuroshard::runtime {

int64_t floatsBetween(const float *base, const float *gradients) {
  auto bytes = static_cast<int64_t>(reinterpret_cast<uintptr_t>(gradients) -
                                    reinterpret_cast<uintptr_t>(base));
  return bytes / static_cast<int64_t>(sizeof(float));
}

void fillGradientOffsets(const PeerIds &ids, int64_t first, int64_t stride,
                         int64_t *offsets) {
  if (!ids.offsets) { // every id has a gradient of its own
    for (int64_t j = 0; j < ids.numIds; ++j)
      offsets[j] = first + j * stride;
    return;
  }
  for (int64_t bag = 0; bag < ids.bags; ++bag)
    std::fill(offsets + ids.offsets[bag], offsets + ids.offsets[bag + 1],
              first + bag * stride);
}

} // namespace neuroshard::runtime
