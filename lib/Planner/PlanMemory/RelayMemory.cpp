//===- RelayMemory.cpp - Buffers of relays --------------------------------===//

#include "RelayMemory.h"

#include "Cost/RelayLoads.h"
#include "Cost/StagedExchange.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

void neuroshard::addRelayBuffers(const ShardingProblem &problem,
                                 std::span<const Shard> shards,
                                 std::vector<MemoryTerms> &devices) {
  bool allDirect = std::ranges::all_of(shards, [](const Shard &shard) {
    return shard.route == Route::Direct || shard.replicated();
  });
  if (allDirect || problem.memoryModel == MemoryModel::WeightsOnly)
    return;
  std::vector<DeviceLoad> loads(devices.size());
  std::vector<RelayLoad> relays = relayLoads(problem, shards, loads);
  if (relays.empty())
    return;
  auto stagesOf = [&](Direction direction) {
    return exchangeStages(problem.topology, loads, relays, direction);
  };
  std::vector<Traffic> results = stagesOf(Direction::Forward);
  std::vector<Traffic> gradients = stagesOf(Direction::Backward);
  // Owners sort what they send by relay, into the copy of a cast if any.
  bool hasCast = problem.batch.wireType.results != WireFormat::F32;
  auto roundedUp = [](double bytes) {
    return static_cast<int64_t>(std::ceil(bytes));
  };
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].forwardBytes +=
        roundedUp(results[0].insideIn[i] + results[1].acrossOut[i] +
                  (hasCast ? 0 : results[0].insideOut[i]));
    devices[i].backwardBytes +=
        roundedUp(gradients[0].acrossIn[i] + gradients[1].insideOut[i]);
  }
}
