//===- IdMaps.cpp - Maps of dynamic ids beside a plan ---------------------===//

#include "IdMaps.h"

#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/ShardWork.h"

#include <algorithm>

using namespace neuroshard;

bool neuroshard::hasDynamicIds(const ShardingProblem &problem) {
  return std::ranges::any_of(problem.tables, &Table::dynamicIds);
}

ShardingProblem neuroshard::withoutIdMaps(ShardingProblem problem) {
  std::vector<int64_t> taken = idMapMemory(problem);
  for (size_t host = 0; host < taken.size(); ++host) {
    int64_t &bytes = problem.topology.hosts[host].memoryBytes;
    bytes = std::max<int64_t>(0, bytes - taken[host]);
  }
  for (Table &table : problem.tables) {
    table.dynamicIds = false;
    table.idCandidates = 0;
  }
  return problem;
}

double neuroshard::idMapsMs(const ShardingProblem &given,
                            const CostModel &model) {
  const ShardingProblem problem = summarized(given);
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  auto devices = static_cast<double>(problem.topology.deviceCount());
  double idBytes = 0, rowBytes = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    if (!problem.tables[i].dynamicIds)
      continue;
    double ids =
        distinctRowsOf(problem, static_cast<int>(i), features[i], 1 / devices);
    idBytes += ids * 8;
    rowBytes += ids * (problem.tables[i].rows >= int64_t{1} << 31 ? 8 : 4);
  }
  auto exchangeMs = [&](double bytes) {
    std::vector<double> none(problem.topology.devices.size());
    std::vector<double> each(problem.topology.devices.size(), bytes);
    std::vector<double> times = model.communicationMs(
        {&problem.topology, none, each, each}, {}, Direction::Input);
    return times.empty() ? 0 : *std::ranges::max_element(times);
  };
  return exchangeMs(idBytes) + exchangeMs(rowBytes);
}
