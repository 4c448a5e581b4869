//===- RowSumExchange.h - All-reduce of gradients by row --------*- C++ -*-===//
//
// The gradients of replicated tables that travel as sums of rows, as
// Artifact/ReplicaUpdate.h describes. The functions do nothing, or must not be
// called, without such tables. They throw.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWSUMEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWSUMEXCHANGE_H

#include "Device/Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Adds the packed gradients of the local batch up by row.
void addUpRows(Device &device, const Routed &routed, Partials &gradients);
/// Sends each rank its section of the sums.
void startRowSums(Device &device, Partials &gradients);
/// Waits for the exchange under way and starts the next one, unless it is the
/// last: other tables can be updated meanwhile.
void continueRowSums(Device &device, Partials &gradients);
/// Waits for the sums over all ranks.
void receiveRowSums(Device &device, Partials &gradients);
/// Adds the received sums of steps of one exchange to those of the first, in
/// their order. The tables of all must be the same.
void addUpSteps(Device &device, std::span<Partials *const> steps);

/// The sums as backends take them.
std::vector<SlotSums> slotSumsOf(const Partials &gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_ROWSUMEXCHANGE_H
