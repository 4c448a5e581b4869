//===- Part.h - Ids of one lookup on one slot -------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_PART_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_PART_H

#include "neuroshard/RuntimeCuda/CudaABI.h"

#include <cstdint>

namespace neuroshard::cuda {

/// A part of the C interface, and what that has no field for.
struct Part : nsc_part {
  int64_t padding = -1; ///< an id that updates nothing; -1: none.
  /// Not 0: ids are rows with the sums of their gradients, without bags and
  /// sample weights.
  int64_t isSummed = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_PART_H
