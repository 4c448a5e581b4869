//===- CatchUp.h - Rows take the steps that they have missed ---*- C++ -*-===//
//
// Of tables whose optimizer catches up. A step that does not touch a row leaves
// it as it is; the row takes it, by a gradient of 0, before it is read: when it
// is looked up, and all rows before the caller sees or changes the table.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_CATCHUP_H
#define NEUROSHARD_LIB_RUNTIME_STEP_CATCHUP_H

#include "Device/Device.h"

#include <span>

namespace neuroshard::runtime {

/// The rows of a step's ids, which are there.
void catchUp(Device &device, const Routed &routed);

/// All rows, after which there is no history.
void catchUpAll(Device &device);

/// Adds a step to the histories and completes the step sizes, per slot, by
/// where it is there. To be called before the update is prepared.
void addToHistories(Device &device, std::span<StepSize> stepSizes);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_CATCHUP_H
