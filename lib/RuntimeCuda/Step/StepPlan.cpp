//===- StepPlan.cpp - The arrays of a step on the GPU ---------------------===//

#include "StepPlan.h"

namespace neuroshard::cuda {

int64_t StepPlan::allocatedBytes() const {
  int64_t bytes = tasks.allocatedBytes() + trainingArray.allocatedBytes() +
                  sortedArray.allocatedBytes();
  for (const UploadedArray &array : taskOfBlock)
    bytes += array.allocatedBytes();
  return bytes;
}

TrainingLayout::TrainingLayout(const KeySpace &keys) {
  auto bytesOf = [](const std::vector<int32_t> &slots) {
    return static_cast<int64_t>(slots.size() * sizeof(nsg_slot));
  };
  sortedSlots = sizeof(TrainingHead);
  smallSlots = sortedSlots + bytesOf(keys.updated);
  sumsBegin = smallSlots + bytesOf(keys.small);
  rowsBegin = sumsBegin +
              static_cast<int64_t>((keys.small.size() + 1) * sizeof(int32_t));
}

} // namespace neuroshard::cuda
