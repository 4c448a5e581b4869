//===- Limits.h - Largest sizes of a problem --------------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_LIMITS_H
#define NEUROSHARD_MODEL_LIMITS_H

#include <cstddef>
#include <cstdint>

namespace neuroshard {

/// More than any cluster has; tables with one entry per device stay small.
inline constexpr int64_t kMaxDevices = 65536;

/// Of a table.
inline constexpr int64_t kMaxRows = int64_t{1} << 48;
inline constexpr int64_t kMaxDim = int64_t{1} << 20;
/// Samples over all devices.
inline constexpr int64_t kMaxBatch = int64_t{1} << 31;
/// Mean ids of a feature per sample.
inline constexpr double kMaxPooling = 1e6;
inline constexpr int kMaxInputCopies = 16;
inline constexpr int kMaxBackwards = 1024;
/// Of a snapshot among the others.
inline constexpr double kMaxWeight = 1e9;
/// A search keeps statistics and predictions for each snapshot.
inline constexpr size_t kMaxSnapshots = 256;
/// Sums of bytes stay below this, so that no later arithmetic overflows.
inline constexpr double kMaxTotalBytes = 0x1p60;
/// Ids and results of the batches of an update.
inline constexpr double kMaxBatchBytes = 0x1p45;

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_LIMITS_H
