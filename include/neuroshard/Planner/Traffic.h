//===- Traffic.h - Traffic and buffers of a plan's steps --------*- C++ -*-===//
///
/// \file
/// The bytes are those of the artifact that the plan becomes, by the same code:
/// Artifact/StepTraffic.h and Artifact/StepBuffers.h. Searches add up a term
/// for each shard instead: ShardWork, which leaves out alignment, relays and
/// shared streams of ids, and shardMemory().
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_TRAFFIC_H
#define NEUROSHARD_PLANNER_TRAFFIC_H

#include "neuroshard/Artifact/StepBuffers.h"
#include "neuroshard/Artifact/StepTraffic.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <span>
#include <vector>

namespace neuroshard {

/// The features of each exchange by their index: those of one global batch are
/// one input of the model.
std::vector<std::vector<int>>
featuresOfExchanges(const ShardingProblem &problem);

/// Tables, lookups and shards as the artifact of a plan has them, with a lookup
/// for each feature of featuresOfExchanges(). Shards of unknown tables or
/// devices are left out (verify() reports them).
ExchangePlan exchangePlan(const ShardingProblem &problem,
                          std::span<const Shard> shards);

/// A step of the mean numbers of ids, spread evenly over devices and rows. The
/// problem must outlive it.
StepLoad expectedLoad(const ShardingProblem &problem, const ExchangePlan &plan,
                      const std::vector<ExchangeLayout> &layouts);

/// A step of as many ids as 99 % of the batches stay below, spread likewise,
/// all of them distinct. The problem must outlive it.
StepLoad fullLoad(const ShardingProblem &problem, const ExchangePlan &plan,
                  const std::vector<ExchangeLayout> &layouts);

/// Expects a problem for target native and shards that verify() accepts.
StepTraffic planTraffic(const ShardingProblem &problem,
                        std::span<const Shard> shards, const StepLoad &load);

/// Of expectedLoad().
StepTraffic planTraffic(const ShardingProblem &problem,
                        std::span<const Shard> shards);

/// The sums of planTraffic() for each device.
DeviceTraffic planDeviceTraffic(const ShardingProblem &problem,
                                std::span<const Shard> shards);

/// Bytes that each device takes for a step beside its tables. Expects what
/// planTraffic() expects.
std::vector<BufferBytes> planBuffers(const ShardingProblem &problem,
                                     std::span<const Shard> shards,
                                     const StepLoad &load);

/// Of fullLoad(); with snapshots of their summary.
std::vector<BufferBytes> planBuffers(const ShardingProblem &problem,
                                     std::span<const Shard> shards);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_TRAFFIC_H
