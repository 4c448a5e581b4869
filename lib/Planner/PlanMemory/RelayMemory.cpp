//===- RelayMemory.cpp - Buffers of relays --------------------------------===//

#include "RelayMemory.h"

#include "Cost/RelayLoads.h"

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
  auto roundedUp = [](double bytes) {
    return static_cast<int64_t>(std::ceil(bytes));
  };
  // Owners sort what they send by relay, into the copy of a cast if any.
  bool hasCast = problem.batch.wireType.results != ElementType::F32;
  auto groupSize = static_cast<size_t>(relayGroupSize(problem));
  for (size_t first = 0; first < devices.size(); first += groupSize) {
    double results = 0, gradients = 0;
    for (size_t i = first; i < first + groupSize; ++i) {
      results += relays[i].forwardInside / static_cast<double>(groupSize);
      gradients += relays[i].backwardInside / static_cast<double>(groupSize);
    }
    for (size_t i = first; i < first + groupSize; ++i) {
      devices[i].forwardBytes +=
          roundedUp(relays[i].forwardAcross + results +
                    (hasCast ? 0 : relays[i].forwardInside));
      devices[i].backwardBytes +=
          roundedUp(relays[i].backwardAcross + gradients);
    }
  }
}
