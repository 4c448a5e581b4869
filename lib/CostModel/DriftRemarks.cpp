//===- DriftRemarks.cpp - Remarks on copies that drift --------------------===//

#include "DriftRemarks.h"

#include <map>
#include <set>

using namespace neuroshard;

/// Tables that one remark names; the rest are counted.
static constexpr size_t kMostTables = 3;

void neuroshard::addDriftRemarks(const ShardingPlan &plan,
                                 std::vector<std::string> &remarks) {
  std::map<int64_t, std::set<std::string>> tablesOf;
  for (const Shard &shard : plan.shards)
    if (shard.copiesDrift())
      tablesOf[shard.syncEvery].insert(shard.table);
  for (const auto &[steps, tables] : tablesOf) {
    std::string text =
        "not exact (sync_every " + std::to_string(steps) + "): copies of ";
    size_t listed = 0;
    for (const std::string &table : tables) {
      if (listed == kMostTables)
        break;
      text += (listed++ ? ", '" : "'") + table + "'";
    }
    if (tables.size() > listed)
      text += " and " + std::to_string(tables.size() - listed) + " more tables";
    remarks.push_back(text +
                      " apply the gradients of their own part of the "
                      "batch and are averaged after " +
                      (steps == 1
                           ? "each step"
                           : "every " + std::to_string(steps) + " steps"));
  }
}
