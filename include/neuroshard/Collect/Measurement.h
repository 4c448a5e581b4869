//===- Measurement.h - Measures the compute of a shard set ------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_MEASUREMENT_H
#define NEUROSHARD_COLLECT_MEASUREMENT_H

#include "neuroshard/Collect/MeasuredSet.h"
#include "neuroshard/Planner/CostModel.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// The set as cost models see it, in the order of its shards. `access` points
/// into `set`.
std::vector<ShardWork> describeSet(const MeasuredSet &set);

struct MeasureOptions {
  /// Threads of the device.
  int threads = 1;
  int warmUpRuns = 2;
  /// Timed runs: at least `minRuns`, then more until they have taken
  /// `minSeconds`, but at most `maxRuns`.
  int minRuns = 5;
  int maxRuns = 15;
  double minSeconds = 0.05;
  uint64_t seed = 0;
  /// As in neuroshard-compile.
  std::string targetCpu = "host";
};

struct Timing {
  ComputeMs median;
  /// (third - first quartile) / median of forward + backward.
  double spread = 0;
  int runs = 0;
};

/// A set with its memory, ready to run: the project's own kernels, through the
/// runtime, one device in this process. Every run is a training step on a new
/// batch. Forward is the runtime's phase `lookup`, backward its phases `sort`
/// and `update`; routing and exchanging are not in them.
class LoadedSet {
public:
  virtual ~LoadedSet();
  virtual Expected<Timing> measure() = 0;
};

/// Compiles, loads and measures sets. Must outlive what it loads.
class Measurer {
public:
  explicit Measurer(MeasureOptions options);
  ~Measurer();

  /// Compiles the kernels of these sets, several at once; measure() compiles
  /// what is still missing.
  Expected<void>
  compile(std::span<const MeasuredSet> sets,
          const std::function<void(size_t done, size_t all)> &progress);

  /// An error if the machine has not enough memory or the set is one the
  /// kernels cannot run alone (replicated shards). `set` must outlive the
  /// result.
  Expected<std::unique_ptr<LoadedSet>> load(const MeasuredSet &set);

  /// load() and LoadedSet::measure().
  Expected<Timing> measure(const MeasuredSet &set);

  struct State;

private:
  std::unique_ptr<State> state;
};

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_MEASUREMENT_H
