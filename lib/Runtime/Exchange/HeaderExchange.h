//===- HeaderExchange.h - Headers of ids between all ranks -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_HEADEREXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_HEADEREXCHANGE_H

#include "Device/Device.h"

#include <functional>
#include <vector>

namespace neuroshard::runtime {

/// Sends each rank its header, of WorldPlan::headerNumbers, and returns those
/// of all ranks for this one. `headers`: one after the other. `meanwhile`: what
/// other ranks may wait for before they send theirs.
std::vector<std::vector<int64_t>>
swapHeaders(Device &device, const std::vector<int64_t> &headers,
            const std::function<void()> &meanwhile);

/// A copy of bytes for a message in memory of the host.
Buffer onHost(Device &device, const void *data, size_t bytes);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_HEADEREXCHANGE_H
