//===- NormExchange.h - Norms of rows over all columns ----------*- C++ -*-===//
//
// Exact row-wise optimizers and trust ratios need norms of whole rows, also if
// several shards have their columns.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_NORMEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_STEP_NORMEXCHANGE_H

#include "Device/Device.h"

#include <memory>
#include <vector>

namespace neuroshard::runtime {

/// The norms of all columns that the slots of a device wait for.
struct NormMessages {
  std::vector<NormTerm> terms; ///< of each slot in the order of the columns.
  /// Keeps those of other ranks.
  std::unique_ptr<CommunicatorRequest> request;
};

/// Exchanges the norms of an update after its first phase.
NormMessages exchangeNorms(Device &device, const Update &update);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_NORMEXCHANGE_H
