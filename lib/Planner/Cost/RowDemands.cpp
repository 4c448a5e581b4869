//===- RowDemands.cpp - Row demand of each table, found once --------------===//

#include "RowDemands.h"

using namespace neuroshard;

RowDemand neuroshard::rowDemandOf(const ShardingProblem &problem, int table,
                                  const std::vector<int> &features) {
  double lookups = 0;
  for (int feature : features)
    lookups +=
        lookupsOf(problem, problem.features[static_cast<size_t>(feature)]);
  return {problem.tables[static_cast<size_t>(table)], lookups,
          static_cast<double>(problem.batch.globalSize)};
}

const RowDemand &RowDemands::of(int table) {
  auto index = static_cast<size_t>(table);
  Once &once = demands[index];
  std::call_once(once.flag, [&] {
    once.demand = rowDemandOf(problem, table, features[index]);
  });
  return *once.demand;
}
