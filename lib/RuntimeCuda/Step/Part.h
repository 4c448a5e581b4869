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
  /// Of a slot with a cache of rows: the places of the ids' rows in it, in the
  /// type of the ids; or, not 0, the ids are places themselves.
  const void *places = nullptr;
  int64_t idsArePlaces = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_PART_H
