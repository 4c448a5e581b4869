//===- NormExchange.h - Norms of gradients over all columns -----*- C++ -*-===//
//
// An exact row-wise optimizer needs the norm of a whole row of gradients, also
// if several shards have its columns.
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
