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

} // namespace neuroshard::cuda
