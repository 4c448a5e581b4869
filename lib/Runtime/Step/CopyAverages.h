//===- CopyAverages.h - Averages copies that drift --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_COPYAVERAGES_H
#define NEUROSHARD_LIB_RUNTIME_STEP_COPYAVERAGES_H

#include "Device/Device.h"

#include <vector>

namespace neuroshard::runtime {

/// Averages the weights and optimizer states of these shards over their copies,
/// in f32, in the order of the copies' devices, rounded once to the table's
/// type. All ranks call it together, after requireNoCapture().
void averageCopies(Device &device, const std::vector<int32_t> &shards);

/// Throws if copies drift and the step is captured into a graph: a replay would
/// not average them in the steps in which it is due.
void requireNoCapture(const Device &device);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_COPYAVERAGES_H
