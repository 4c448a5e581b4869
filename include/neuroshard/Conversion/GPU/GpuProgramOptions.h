//===- GpuProgramOptions.h - Options of GPU programs ------------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUPROGRAMOPTIONS_H
#define NEUROSHARD_CONVERSION_GPU_GPUPROGRAMOPTIONS_H

#include "neuroshard/Model/Types.h"

namespace neuroshard {

struct GpuProgramOptions {
  /// Type of the results.
  ElementType output = ElementType::F32;
};

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUPROGRAMOPTIONS_H
