//===- GpuProgramOptions.h - Options of GPU programs ------------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUPROGRAMOPTIONS_H
#define NEUROSHARD_CONVERSION_GPU_GPUPROGRAMOPTIONS_H

#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Model/Types.h"

#include <cstdint>

namespace neuroshard {

struct GpuProgramOptions {
  /// Type of the results.
  ElementType output = ElementType::F32;
  /// Slots of up to this many rows are updated without a sort, if their
  /// optimizer takes one phase. From 0 to NSG_MOST_SMALL_ROWS.
  int64_t smallRows = kSmallRows;
};

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUPROGRAMOPTIONS_H
