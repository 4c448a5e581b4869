//===- Limits.h - Largest sizes of a problem --------------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_LIMITS_H
#define NEUROSHARD_MODEL_LIMITS_H

#include <cstdint>

namespace neuroshard {

/// More than any cluster has; tables with one entry per device stay small.
constexpr int64_t kMaxDevices = 65536;

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_LIMITS_H
