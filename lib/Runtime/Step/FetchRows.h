//===- FetchRows.h - Rows of lower tiers for a batch ------------*- C++ -*-===//
//
// Rows of shards with a cache start to come as soon as the ids of a batch are
// at the owners of its rows: while an earlier batch computes, if ids travel
// ahead.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_FETCHROWS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_FETCHROWS_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// Receives the ids of a step and starts to bring their rows. Later calls do
/// nothing.
void fetchRows(Device &device, Routed &routed);
/// The same, and waits for them.
void waitForRows(Device &device, Routed &routed);

/// Lets the ids of a step, which are under way, have their rows brought as soon
/// as they are there: now on a single device, else by fetchAhead.
void expectIds(Device &device, Routed &routed);
/// Receives the ids that are expected and starts to bring their rows. To be
/// called at the same point of a step on all ranks.
void fetchAhead(Device &device);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_FETCHROWS_H
