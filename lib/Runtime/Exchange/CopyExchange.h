//===- CopyExchange.h - Sums of gradients between copies --------*- C++ -*-===//
//
// Each copy of a shard gets the gradients of its readers alone. It adds them up
// by row, in the order of an update, and sends rows and sums to the other
// copies. Every copy then applies the sums of all of them, in the order of
// their devices, so that copies keep the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_COPYEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_COPYEXCHANGE_H

#include "Device/Device.h"

#include <memory>
#include <vector>

namespace neuroshard::runtime {

/// What parts of copied shards point to.
struct CopyMessages {
  std::unique_ptr<CommunicatorRequest> request;
  Buffer decoded; ///< sums, if f32 did not travel.
};

/// Replaces the parts of copied shards by the rows and sums of all copies.
CopyMessages exchangeCopies(Device &device, std::vector<GradientPart> &parts);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_COPYEXCHANGE_H
