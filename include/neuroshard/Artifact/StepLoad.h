//===- StepLoad.h - Samples and ids of one step -----------------*- C++ -*-===//
//
// What runs a step, and the numbers of samples and ids from which
// its traffic and its buffers follow.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_STEPLOAD_H
#define NEUROSHARD_ARTIFACT_STEPLOAD_H

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace neuroshard {

/// What runs the kernels. GPUs sort and update in the arrays of
/// UpdateBuffers.h, and exchange as many norms as there may be where nobody
/// waits for their number.
enum class Engine { Cpu, Gpu };

/// Devices that follow each other.
struct DeviceRange {
  size_t begin = 0, end = 0;

  bool contains(size_t device) const { return begin <= device && device < end; }
  size_t size() const { return end - begin; }
};

/// Samples and ids of one step in an exchange.
struct ExchangeLoad {
  std::vector<int64_t> batches; ///< per device: its samples.
  /// Per device: how many of its ids fall into each bucket. Devices with the
  /// same numbers may share them.
  std::vector<std::shared_ptr<const std::vector<int64_t>>> idsOfBucket;

  int64_t ids(size_t device, size_t bucket) const {
    return (*idsOfBucket[device])[bucket];
  }
  /// All devices, in runs of those that bring the same numbers. A planner
  /// spreads samples evenly, which makes two at most.
  std::vector<DeviceRange> alike() const;
};

struct StepLoad {
  std::vector<ExchangeLoad> exchanges;
  /// How many distinct rows of a table, in a range of its rows, the samples of
  /// some ranks update in the step. Asked for tables that exchange norms, and
  /// for the readers of copies.
  std::function<int64_t(int32_t table, const Range &rows, const Readers &ranks)>
      distinctRows;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_STEPLOAD_H
