//===- InPlaceIds.h - Ids that kernels read in the caller's memory -*- C++ -*-//
//
// On a single device that checks ids late (Backend.h). Nothing is copied, and
// the host waits for nothing.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_INPLACEIDS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_INPLACEIDS_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// Whether the device can read the ids of this exchange in place: it owns all
/// of them, and nobody needs to know how many of them a feature has.
bool canReadInPlace(const Device &device, const Routed &routed);

/// Describes the ids to kernels, after describeBatch. `input` must outlive
/// `routed`.
void readInPlace(Device &device, const JaggedInput &input, Routed &routed);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_INPLACEIDS_H
