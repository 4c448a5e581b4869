//===- NumberBytes.h - Bytes of the numbers in step buffers -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_NUMBERBYTES_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_NUMBERBYTES_H

#include <cstdint>

namespace neuroshard {

inline constexpr int64_t kFloatBytes = 4; ///< f32 values and norms.
inline constexpr int64_t kIndexBytes = 8; ///< rows, places and offsets.

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_NUMBERBYTES_H
