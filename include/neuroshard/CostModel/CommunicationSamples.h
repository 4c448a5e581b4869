//===- CommunicationSamples.h - Measured exchanges --------------*- C++ -*-===//
///
/// \file
/// The file that neuroshard.collect.communication writes and neuroshard-train
/// reads (schema neuroshard.communication_samples.v1, a safetensors file;
/// docs/communication-model.md lists its columns).
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_COMMUNICATIONSAMPLES_H
#define NEUROSHARD_COSTMODEL_COMMUNICATIONSAMPLES_H

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Planner/CostModel.h"

#include <map>
#include <string>
#include <vector>

namespace neuroshard {

inline constexpr std::string_view kCommunicationSamplesSchema =
    "neuroshard.communication_samples.v1";

/// One exchange among the D devices of a topology. Vectors are [D].
struct CommunicationSample {
  /// Index into CommunicationSamples::topologies.
  int64_t topology = 0;
  Direction direction = Direction::Forward;
  int64_t batch = 0;
  /// As in Traffic.
  std::vector<double> dims, bytesOut, bytesIn;
  /// How much later than the first each device started.
  std::vector<double> skewsMs;
  /// From a device's own start until its results are there; medians.
  std::vector<double> timesMs;
  /// The reference exchange just before and just after.
  double referenceBeforeMs = 0;
  double referenceAfterMs = 0;
  /// Index of the sample this one measures again; -1: none.
  int64_t repeatOf = -1;
  bool heldOut = false;
  /// Seconds since 1970.
  int64_t time = 0;
};

struct CommunicationSamples {
  /// Facts about the run: backend, device_class, machine, torch, seed, rule,
  /// measured, counts.
  std::map<std::string, std::string> metadata;
  /// Their links have the fitted figures.
  std::vector<Topology> topologies;
  /// Fitted figures of the k-th level, counted from the innermost.
  std::vector<LinkFigures> links;
  /// Without those that the file's rule rejects.
  std::vector<CommunicationSample> samples;
  int64_t rejected = 0;

  Traffic trafficOf(const CommunicationSample &sample) const;
};

/// An error names the file and what is wrong with it. A repeat of a rejected
/// sample is read as a sample of its own.
Expected<CommunicationSamples>
readCommunicationSamples(const std::string &path);
Expected<void> writeCommunicationSamples(const CommunicationSamples &samples,
                                         const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_COMMUNICATIONSAMPLES_H
