//===- Train.h - Runs one training step -------------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_TRAIN_H
#define NEUROSHARD_TOOLS_RUN_TRAIN_H

#include "Call.h"
#include "Inputs.h"

#include "neuroshard/Runtime/DriverABI.h"

#include <functional>
#include <random>

namespace neuroshard::run {

struct TrainingStep {
  double startMs = 0, lookupMs = 0, waitMs = 0, gradientsMs = 0, updateMs = 0;
  /// The gradients it was made with, one per lookup, for the whole batch.
  Value gradients;
};

/// What a function returned on each device.
using Results = std::vector<std::vector<Result>>;

/// Ids on their way.
struct SentIds {
  double ms = 0;
  Results pending;
};

/// Starts the embeddings of the jagged arguments of each device. `device`: as
/// in openWorld. Throws std::runtime_error if that fails.
SentIds sendIds(nsrt_world *world, const std::string &device,
                const Signature &signature,
                const std::vector<std::vector<Value>> &localIds);

/// The step of ids that have been sent: waits for their results, calls
/// `sendNext`, and updates by random gradients. Throws std::runtime_error if
/// the step fails.
TrainingStep train(nsrt_world *world, const std::string &device,
                   const Signature &signature, const SentIds &ids,
                   float learningRate, int64_t step, std::mt19937_64 &random,
                   const std::function<void()> &sendNext);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_TRAIN_H
