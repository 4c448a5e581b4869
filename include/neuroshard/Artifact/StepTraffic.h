//===- StepTraffic.h - Bytes that travel in one step ------------*- C++ -*-===//
//
// What each device sends to each other in one step, from the layout of the
// exchanges, the batches and the numbers of ids alone. The headers that tell
// the sizes of messages, and the gradients of sample weights, are left out. A
// device's buffers for messages have the sum of what it sends, or receives,
// with what stays on it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_STEPTRAFFIC_H
#define NEUROSHARD_ARTIFACT_STEPTRAFFIC_H

#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Bytes by sender and receiver, with what stays on a device.
using PairBytes = std::vector<std::vector<int64_t>>;

struct ExchangeTraffic {
  PairBytes ids;              ///< all that ranks of samples send.
  PairBytes relayedIds;       ///< what relays send on.
  PairBytes results;          ///< all that owners send.
  PairBytes relayedResults;   ///< what relays send on.
  PairBytes gradients;        ///< all that ranks of samples send.
  PairBytes relayedGradients; ///< what relays send on.
  /// Of replicated tables, to every device: gradients and ids, or their sums.
  PairBytes copies;

  bool operator==(const ExchangeTraffic &) const = default;
};

/// Of a training step.
struct StepTraffic {
  std::vector<ExchangeTraffic> exchanges;
  PairBytes norms;
  PairBytes copySums; ///< that copies of shards exchange.
  /// What averages of copies that drift take in a mean step.
  PairBytes averages;

  bool operator==(const StepTraffic &) const = default;
};

StepTraffic stepTraffic(const ExchangePlan &plan,
                        const std::vector<ExchangeLayout> &layouts,
                        const StepLoad &load, Engine engine);

/// Bytes of a step that each device sends to others and receives from them.
struct DeviceTraffic {
  std::vector<int64_t> forward;  ///< results.
  std::vector<int64_t> backward; ///< gradients, copies, sums and norms.
};

/// The sums of stepTraffic() for each device.
DeviceTraffic deviceTraffic(const ExchangePlan &plan,
                            const std::vector<ExchangeLayout> &layouts,
                            const StepLoad &load, Engine engine);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_STEPTRAFFIC_H
