//===- RouteRemarks.cpp - Remarks on relays without effect ----------------===//

#include "RouteRemarks.h"

#include "neuroshard/Artifact/DeviceGroups.h"

#include <set>

using namespace neuroshard;

void neuroshard::addRouteRemarks(const ShardingProblem &problem,
                                 const ShardingPlan &plan,
                                 std::vector<std::string> &remarks) {
  std::set<std::string> relayed;
  for (const Shard &shard : plan.shards) {
    if (shard.route != Route::Relay)
      continue;
    if (shard.hasCopies())
      remarks.push_back("route relay of table '" + shard.table +
                        "' has no effect: it is replicated, so its results do "
                        "not travel");
    else
      relayed.insert(shard.table);
  }
  const std::vector<int> &sizes = problem.topology.levels.back().groupSizes;
  if (relayed.empty() || commonGroupSize(sizes) > 0)
    return;
  std::string found;
  for (int size : sizes)
    found += (found.empty() ? "" : "+") + std::to_string(size);
  remarks.push_back(
      "route relay of table '" + *relayed.begin() + "'" +
      (relayed.size() > 1
           ? " and " + std::to_string(relayed.size() - 1) + " more"
           : "") +
      " has no effect: relays need several groups of devices, of one size of "
      "2 or more; level '" +
      problem.topology.levels.back().name + "' has groups of " + found);
}
