//===- EnsembleMembers.cpp - Trains the members of an ensemble ------------===//

#include "EnsembleMembers.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

using namespace neuroshard;

uint64_t neuroshard::memberSeed(const TrainingOptions &options, size_t member) {
  return options.seed * 1000003 + member * 1009;
}

void neuroshard::trainMembers(
    const TrainingOptions &options, size_t samples,
    const std::function<void(size_t, const FitOptions &)> &train) {
  int64_t batches =
      (static_cast<int64_t>(samples) + options.batch - 1) / options.batch;
  int64_t epochs = std::max(options.epochs, options.minSteps / batches);
  size_t members = static_cast<size_t>(options.members);
  std::mutex progressMutex;
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t member = next++; member < members; member = next++) {
      FitOptions fit;
      fit.epochs = epochs;
      fit.batch = options.batch;
      fit.learningRate = options.learningRate;
      fit.weightDecay = options.weightDecay;
      fit.seed = memberSeed(options, member);
      fit.progress = [&, member](int64_t epoch, double loss) {
        if (!options.progress)
          return;
        std::lock_guard lock(progressMutex);
        options.progress(
            {static_cast<int>(member), options.members, epoch, epochs, loss});
      };
      train(member, fit);
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < std::min(options.threads, options.members); ++i)
    helpers.emplace_back(work);
  work();
}
