//===- StepLoad.h - Samples and ids of one step -----------------*- C++ -*-===//
//
// The engine that runs a step, and the numbers of samples and ids from which
// its traffic and its buffers follow.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_STEPLOAD_H
#define NEUROSHARD_ARTIFACT_STEPLOAD_H

#include "neuroshard/Artifact/ExchangePlan.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace neuroshard {

/// What runs the steps: the runtime in C++ on CPUs, or the engine of PyTorch on
/// GPUs. The latter sends the ids of replicated tables with the others, lets
/// every entry begin at 16 bytes, and has no relays.
enum class Engine { Cpu, Gpu };

/// Samples and ids of one step in an exchange.
struct ExchangeLoad {
  std::vector<int64_t> batches; ///< per device: its samples.
  /// Per device: how many of its ids fall into each bucket.
  std::vector<std::vector<int64_t>> idsOfBucket;
};

struct StepLoad {
  std::vector<ExchangeLoad> exchanges;
  /// How many distinct rows of a table, in a range of its rows, the step
  /// updates. Asked for tables that exchange norms.
  std::function<int64_t(int32_t table, const Range &rows)> distinctRows;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_STEPLOAD_H
