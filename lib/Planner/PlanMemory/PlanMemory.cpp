//===- PlanMemory.cpp - Memory of a plan by device and host ---------------===//

#include "neuroshard/Planner/PlanMemory.h"

#include "AverageMemory.h"
#include "Memory/CacheMemory.h"
#include "RelayMemory.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

using namespace neuroshard;

/// Once on each device that has row caches.
static void addCacheStaging(const ShardingProblem &problem,
                            std::span<const Shard> shards,
                            MemoryReport &report) {
  std::vector<CacheBytes> staging(report.devices.size());
  for (const Shard &shard : shards)
    for (int device : shard.devices) {
      if (device < 0 || device >= problem.topology.deviceCount())
        continue;
      CacheBytes &most = staging[static_cast<size_t>(device)];
      most = mostOf(most, cacheStagingBytes(problem, shard.tier));
    }
  for (size_t device = 0; device < staging.size(); ++device) {
    report.devices[device].weightsBytes += staging[device].device;
    auto host = static_cast<size_t>(problem.topology.devices[device].host);
    report.devices[device].hostBytes += staging[device].host;
    report.hostBytes[host] += staging[device].host;
  }
}

MemoryReport neuroshard::planMemory(const ShardingProblem &problem,
                                    std::span<const Shard> shards) {
  if (!problem.snapshots.empty())
    return planMemory(summarized(problem), shards);
  MemoryReport report;
  report.hostBytes = idMapMemory(problem);
  report.diskBytes.resize(problem.topology.hosts.size());
  report.devices = deviceBaseMemory(problem);

  std::unordered_map<std::string_view, size_t> tableOfName;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, i);
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::vector<bool> columnSplit = columnSplitTables(problem.tables, shards);
  std::vector<int64_t> idsBytes;
  int64_t copies = std::max<int64_t>(1, problem.batch.inputCopies);
  for (const Shard &shard : shards) {
    idsBytes.push_back(0);
    auto found = tableOfName.find(shard.table);
    if (found == tableOfName.end())
      continue;
    size_t index = found->second;
    const Table &table = problem.tables[index];
    bool norms = needsNormExchange(
        table.optimizer.kind, problem.optimizerSemantics, columnSplit[index]);
    MemoryTerms terms =
        shardMemory(problem, table, features[index], shard, norms);
    idsBytes.back() = terms.idsBytes / copies;
    for (int device : shard.devices) {
      if (device < 0 || device >= problem.topology.deviceCount())
        continue;
      report.devices[static_cast<size_t>(device)] += terms;
      auto host = static_cast<size_t>(
          problem.topology.devices[static_cast<size_t>(device)].host);
      report.hostBytes[host] += terms.hostBytes;
      report.diskBytes[host] += terms.diskBytes;
    }
  }

  addCacheStaging(problem, shards, report);
  addRelayBuffers(problem, shards, idsBytes, report.devices);
  addAverageMessages(problem, shards, report.devices);

  int64_t permuteBytes = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    if (columnSplit[i])
      permuteBytes +=
          columnPermuteBytes(problem, problem.tables[i], features[i]);
  for (MemoryTerms &terms : report.devices) {
    terms.forwardBytes += permuteBytes;
    if (problem.mode == StepMode::Training)
      terms.backwardBytes += permuteBytes;
  }
  return report;
}
