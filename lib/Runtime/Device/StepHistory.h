//===- StepHistory.h - Steps that rows may still have to take --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_STEPHISTORY_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_STEPHISTORY_H

#include "neuroshard/Runtime/Buffer.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <cstdint>
#include <vector>

namespace neuroshard::runtime {

/// The steps of a table whose rows catch up, since all of them had.
struct StepHistory {
  std::vector<StepSize> steps;
  /// NSRT_HISTORY_VALUES of each, in memory of the device.
  Buffer values;
  int64_t room = 0; ///< of `values`, in steps.

  int64_t count() const { return static_cast<int64_t>(steps.size()); }
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_STEPHISTORY_H
