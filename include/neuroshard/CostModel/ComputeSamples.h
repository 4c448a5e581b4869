//===- ComputeSamples.h - Measured compute of shard sets --------*- C++ -*-===//
///
/// \file
/// The file neuroshard-collect writes and neuroshard-train reads (schema
/// neuroshard.compute_samples.v1, a safetensors file; docs/cost-models.md lists
/// its columns).
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_COMPUTESAMPLES_H
#define NEUROSHARD_COSTMODEL_COMPUTESAMPLES_H

#include "neuroshard/Planner/CostModel.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// One shard set, measured on one device.
struct ComputeSample {
  /// `access` points into ComputeSamples::access.
  std::vector<ShardWork> shards;
  /// Global batch.
  int64_t batch = 0;
  /// Medians of the timed runs, as measured.
  ComputeMs measured;
  /// (third - first quartile) / median of forward + backward.
  double spread = 0;
  /// The reference kernel just before and just after, ms.
  double referenceBeforeMs = 0;
  double referenceAfterMs = 0;
  /// Number of the set in its run; a repeat has that of the first.
  int64_t set = 0;
  /// Index of the sample this one measures again; -1: none.
  int64_t repeatOf = -1;
  /// Built from tables that no training sample uses.
  bool heldOut = false;
  /// Seconds since 1970.
  int64_t time = 0;

  /// `measured` at the machine's usual speed: scaled by the reference kernel's
  /// median over the file / its time around this sample.
  ComputeMs corrected;
};

struct ComputeSamples {
  /// Facts about the run: device_class, machine, threads, target_cpu, versions,
  /// seed, rejection rule and counts, created.
  std::map<std::string, std::string> metadata;
  /// Access statistics of the table pool; ShardWork::table is the index.
  std::shared_ptr<const std::vector<AccessStatistics>> access;
  std::vector<ComputeSample> samples;
};

Expected<ComputeSamples> readComputeSamples(const std::string &path);
Expected<void> writeComputeSamples(const ComputeSamples &samples,
                                   const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_COMPUTESAMPLES_H
