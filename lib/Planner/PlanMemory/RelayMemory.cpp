//===- RelayMemory.cpp - Buffers of relays --------------------------------===//

#include "RelayMemory.h"

#include "Cost/RelayLoads.h"
#include "Cost/StagedExchange.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

using namespace neuroshard;

static int64_t roundedUp(double bytes) {
  return static_cast<int64_t>(std::ceil(bytes));
}

/// What relays receive of the ids for their group, and hand out, before any
/// results are there. Of the last batch that is sent ahead they have what they
/// received, in place of what owners get; those between have been handed out,
/// since all ids are before later ones are sent. `idsBytes`: what each shard
/// takes for its ids.
static void addRelayedIds(const ShardingProblem &problem,
                          std::span<const Shard> shards,
                          std::span<const int64_t> idsBytes,
                          std::vector<MemoryTerms> &devices) {
  int groupSize = relayGroupSize(problem);
  std::unordered_map<std::string_view, int> tableOfName;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, static_cast<int>(i));
  std::vector<DeviceLoad> loads(devices.size());
  std::vector<OwnedRows> owned;
  for (size_t i = 0; i < shards.size(); ++i) {
    const Shard &shard = shards[i];
    auto table = tableOfName.find(shard.table);
    if (table == tableOfName.end() ||
        isReplicated(problem.tables[static_cast<size_t>(table->second)], shard,
                     static_cast<int>(devices.size())))
      continue;
    auto bytes = static_cast<double>(idsBytes[i]);
    for (int device : shard.devices) {
      if (device < 0 || device >= static_cast<int>(devices.size()))
        continue;
      owned.push_back(
          {table->second, device, {shard.rowBegin, shard.rowEnd}, bytes, 0});
      DeviceLoad &load = loads[static_cast<size_t>(device)];
      load.inputBytes += bytes;
      load.groupInputBytes += bytes;
    }
  }
  shareInGroups(groupSize, std::move(owned), loads);
  std::vector<Traffic> stages =
      exchangeStages(problem.topology, loads, {}, Direction::Input);
  auto laterBatches = static_cast<double>(problem.batch.inputCopies - 1);
  double between = std::max(0.0, laterBatches - 1);
  double earlierBackwards = problem.batch.backwards - 1;
  for (size_t i = 0; stages.size() > 1 && i < devices.size(); ++i) {
    double received = stages[0].acrossIn[i], own = loads[i].inputBytes;
    double handedOut = stages[1].insideOut[i];
    devices[i].idsBytes +=
        roundedUp(laterBatches * std::max(0.0, received - own) +
                  between * (std::min(received, own) + handedOut));
    int64_t kept = roundedUp(earlierBackwards * (received + handedOut));
    devices[i].forwardBytes =
        std::max(devices[i].forwardBytes, roundedUp(received + handedOut)) +
        kept;
    devices[i].backwardBytes += kept;
  }
}

void neuroshard::addRelayBuffers(const ShardingProblem &problem,
                                 std::span<const Shard> shards,
                                 std::span<const int64_t> idsBytes,
                                 std::vector<MemoryTerms> &devices) {
  if (relayGroupSize(problem) == 0 ||
      problem.memoryModel == MemoryModel::WeightsOnly)
    return;
  addRelayedIds(problem, shards, idsBytes, devices);
  bool allDirect = std::ranges::all_of(shards, [](const Shard &shard) {
    return shard.route == Route::Direct || shard.hasCopies();
  });
  if (allDirect)
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
  // Owners sort what they send by relay, into the copy of a cast if any. Those
  // of a cast have room for gradients that come in pieces, too.
  bool hasCast = problem.batch.wireType.results != WireFormat::F32;
  bool areJoined = problem.batch.wireType.gradients == WireFormat::F32 &&
                   piecesOf(relays, Direction::Backward) > 1;
  int64_t earlierBackwards = problem.batch.backwards - 1;
  for (size_t i = 0; i < devices.size(); ++i) {
    int64_t ofBackward =
        problem.mode == StepMode::Inference
            ? 0
            : roundedUp(gradients[0].acrossIn[i] + gradients[1].insideOut[i] +
                        (areJoined ? gradients[1].insideIn[i] : 0));
    devices[i].forwardBytes +=
        roundedUp(results[0].insideIn[i] + results[1].acrossOut[i] +
                  (hasCast ? 0 : results[0].insideOut[i])) +
        earlierBackwards * ofBackward;
    devices[i].backwardBytes += (1 + earlierBackwards) * ofBackward;
  }
}

int64_t neuroshard::roomForRelayedIds(const ShardingProblem &problem) {
  // Groups do not get equal shares of the ids.
  constexpr double kUneven = 1.5;
  if (relayGroupSize(problem) == 0 ||
      problem.memoryModel == MemoryModel::WeightsOnly)
    return 0;
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  double bytes = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    Shard whole{.name = "",
                .table = table.name,
                .rowEnd = table.rows,
                .colEnd = table.dim,
                .devices = {0}};
    bytes += static_cast<double>(
        shardMemory(problem, table, features[i], whole, false).idsBytes);
  }
  auto copies = static_cast<double>(problem.batch.inputCopies);
  // What was received of each later batch; and of those but one, and of earlier
  // backwards, what is handed out, and what was received beside it.
  double terms = (copies - 1) + 2 * std::max(0.0, copies - 2) +
                 2 * (problem.batch.backwards - 1);
  return roundedUp(kUneven * bytes * terms / copies /
                   problem.topology.deviceCount());
}
