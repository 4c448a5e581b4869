//===- Collector.h - Measures shard sets for a data file --------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_COLLECTOR_H
#define NEUROSHARD_COLLECT_COLLECTOR_H

#include "neuroshard/Collect/Measurement.h"
#include "neuroshard/CostModel/ComputeSamples.h"

#include <atomic>
#include <functional>
#include <string>

namespace neuroshard {

struct CollectOptions {
  std::string path;
  /// Sets to measure, the held-out ones among them; repeats come on top.
  int64_t samples = 5000;
  /// Share of the sets that is made of held-out tables.
  double heldOutShare = 0.12;
  /// Sets measured a second time, half a run later.
  int64_t repeats = 300;
  uint64_t seed = 1;
  /// Weights and optimizer state of a set, at most.
  double setGiB = 2;
  bool resume = false;
  /// Facts the caller knows: versions and the like.
  std::map<std::string, std::string> facts;
  MeasureOptions measure;
};

struct CollectProgress {
  int64_t done = 0;
  int64_t all = 0;
  int64_t rejected = 0;
  double secondsLeft = 0;
};

/// Measures until all is done or `stop` is set; the file is written every
/// minute and at the end. With `resume` it goes on where the file ends, if it
/// was made on the same machine with the same settings; otherwise an existing
/// file is an error.
Expected<void>
collectCompute(const CollectOptions &options, const std::atomic<bool> &stop,
               const std::function<void(const std::string &)> &say,
               const std::function<void(const CollectProgress &)> &progress);

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_COLLECTOR_H
