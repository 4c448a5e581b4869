//===- Drive.h - Runs, times and compares steps -----------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_DRIVE_H
#define NEUROSHARD_TOOLS_RUN_DRIVE_H

#include "Inputs.h"

#include <cstdint>
#include <ostream>
#include <string>

namespace neuroshard::run {

struct DriveOptions {
  std::string directory;
  std::string function = "forward";
  int64_t batch = 1024;
  int64_t steps = 3;
  int32_t threadsPerDevice = 0;
  /// One of deviceNames().
  std::string device = "cpu";
  /// Of files of shards in tier "ssd"; empty: of the environment.
  std::string tierDirectory;
  uint64_t seed = 1;
  PoolingFactors pooling;
  /// File with the features' mean pooling; empty: none.
  std::string workload;
  /// Also a training step of the embeddings after each forward.
  bool train = false;
  float learningRate = 0.125;
  /// Batches in flight: ids of those after the first are sent during its step.
  int64_t pipelineDepth = 1;
  /// A step further than this from the reference is an error; negative: see
  /// Tolerance.
  double tolerance = -1;
};

/// Runs the steps and prints times, phases and differences. Throws
/// std::runtime_error if something fails or a difference is too large.
void drive(DriveOptions options, std::ostream &out);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_DRIVE_H
