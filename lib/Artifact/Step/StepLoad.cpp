//===- StepLoad.cpp - Samples and ids of one step -------------------------===//

#include "neuroshard/Artifact/StepLoad.h"

namespace neuroshard {

std::vector<DeviceRange> ExchangeLoad::alike() const {
  std::vector<DeviceRange> runs;
  for (size_t device = 0; device < batches.size(); ++device) {
    bool isLikeLast = device > 0 && batches[device] == batches[device - 1] &&
                      (idsOfBucket[device] == idsOfBucket[device - 1] ||
                       *idsOfBucket[device] == *idsOfBucket[device - 1]);
    if (!isLikeLast)
      runs.push_back({device, device});
    runs.back().end = device + 1;
  }
  return runs;
}

} // namespace neuroshard
