//===- IdMaps.cpp - Maps of dynamic ids beside a plan ---------------------===//

#include "IdMaps.h"

#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/ShardWork.h"

#include <algorithm>
#include <cmath>

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

/// Milliseconds to find an id of a batch among its distinct ones.
static constexpr double kFindMs = 9.5e-6;

/// Milliseconds of an owner for a distinct id that it is asked for. Larger maps
/// lie in slower memory: a power of their rows that is within an eighth of what
/// was measured from 25 000 to 2 500 000 rows.
static double lookUpMs(double rowsOfOwner) {
  constexpr double kMs = 25e-6, kRows = 25'000, kPower = 0.25;
  return kMs * std::pow(std::max(rowsOfOwner / kRows, 1.0), kPower);
}

IdMapsCost neuroshard::idMapsCost(const ShardingProblem &given,
                                  const CostModel &model) {
  IdMapsCost cost;
  if (!hasDynamicIds(given))
    return cost;
  const ShardingProblem problem = summarized(given);
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  auto devices = static_cast<double>(problem.topology.deviceCount());
  double idBytes = 0, rowBytes = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    if (!table.dynamicIds)
      continue;
    double distinct =
        distinctRowsOf(problem, static_cast<int>(i), features[i], 1 / devices);
    idBytes += distinct * 8;
    rowBytes += distinct * (table.rows >= int64_t{1} << 31 ? 8 : 4);
    for (int feature : features[i])
      cost.lookUpMs +=
          kFindMs / devices *
          lookupsOf(problem, problem.features[static_cast<size_t>(feature)]);
    cost.lookUpMs +=
        distinct * lookUpMs(static_cast<double>(table.rows) / devices);
  }
  auto exchangeMs = [&](double bytes) {
    std::vector<double> none(problem.topology.devices.size());
    std::vector<double> each(problem.topology.devices.size(), bytes);
    std::vector<double> times = model.communicationMs(
        {&problem.topology, none, each, each}, {}, Direction::Input);
    return times.empty() ? 0 : *std::ranges::max_element(times);
  };
  cost.exchangeMs = exchangeMs(idBytes) + exchangeMs(rowBytes);
  return cost;
}
