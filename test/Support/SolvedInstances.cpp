//===- SolvedInstances.cpp - Small problems solved by trying everything ---===//

#include "SolvedInstances.h"

#include <algorithm>
#include <random>

using namespace neuroshard;

namespace {

constexpr double kMaxPlans = 60'000;

/// Ways to spread `groups` columns over `devices`.
double waysOf(int64_t groups, int64_t devices) {
  double ways = 1;
  for (int64_t d = 1; d < devices; ++d)
    ways *= static_cast<double>(groups + d) / static_cast<double>(d);
  return ways;
}

/// The cheapest of all plans of whole and column-cut tables. Two pieces of a
/// table on one device are never better than one.
class Exhaustive {
public:
  Exhaustive(const ShardingProblem &problem, const CostModel &model,
             const ObjectiveOptions &options)
      : problem(problem), model(model), options(options),
        sets(problem.topology.devices.size()), loads(sets.size()) {
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      const Table &table = problem.tables[t];
      works.emplace_back();
      for (int64_t width = 4; width <= table.dim; width += 4)
        works.back().push_back(describeShard(
            problem, static_cast<int>(t), {static_cast<int>(t)},
            Shard{"", table.name, 0, table.rows, 0, width, {0}, Tier::Hbm}));
    }
    for (ShardSet &set : sets)
      set.deviceClass =
          findDeviceClass(problem.topology.devices.front().deviceClass);
  }

  double run() {
    place(0, 0, problem.tables[0].dim / 4);
    return best;
  }

private:
  void place(size_t table, size_t device, int64_t left) {
    if (device == sets.size()) {
      if (left > 0)
        return;
      if (++table == problem.tables.size())
        return judge();
      return place(table, 0, problem.tables[table].dim / 4);
    }
    for (int64_t groups = 0; groups <= left; ++groups) {
      const ShardWork *work =
          groups ? &works[table][static_cast<size_t>(groups) - 1] : nullptr;
      DeviceLoad before = loads[device];
      if (work) {
        sets[device].shards.push_back(work);
        loads[device].dims += work->dims;
        loads[device].inputBytes += work->inputBytes;
        loads[device].forwardBytes += work->forwardBytes;
        loads[device].backwardBytes += work->backwardBytes;
      }
      place(table, device + 1, left - groups);
      if (work)
        sets[device].shards.pop_back();
      loads[device] = before;
    }
  }

  void judge() {
    std::vector<ComputeMs> compute(sets.size());
    model.computeMs(sets, compute);
    for (size_t d = 0; d < loads.size(); ++d)
      loads[d].compute = compute[d];
    best = std::min(
        best, composeCost(problem.topology, loads, model, options).costMs);
  }

  const ShardingProblem &problem;
  const CostModel &model;
  const ObjectiveOptions &options;
  std::vector<std::vector<ShardWork>> works;
  std::vector<ShardSet> sets;
  std::vector<DeviceLoad> loads;
  double best = 1e300;
};

} // namespace

ShardingProblem neuroshard::solvableInstance(uint64_t seed, bool columnsOnly) {
  std::mt19937_64 random(seed);
  auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() %
                                      static_cast<uint64_t>(high - low + 1));
  };
  ShardingProblem problem;
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = 65536;
  int64_t devices = draw(2, 3);
  problem.topology = *parseTopology(std::to_string(devices).append("xH200"));
  double plans = 1;
  for (int64_t i = 0, tables = draw(1, 6); i < tables; ++i) {
    int64_t dim = 4 * draw(1, 4);
    plans *= waysOf(dim / 4, devices);
    if (plans > kMaxPlans)
      break;
    Table table;
    table.name = "t";
    table.name.append(std::to_string(i));
    table.rows = draw(100, 1'000'000);
    table.dim = dim;
    if (!draw(0, 1))
      table.optimizer.kind = OptimizerKind::RowWiseAdagrad;
    Feature feature;
    feature.name = table.name + "_id";
    feature.table = static_cast<int>(i);
    feature.meanPooling = static_cast<double>(draw(1, 40));
    problem.tables.push_back(std::move(table));
    problem.features.push_back(std::move(feature));
    if (columnsOnly)
      problem.constraints.tables.push_back(
          {static_cast<int>(i),
           {ShardingKind::TableWise, ShardingKind::ColumnWise},
           1});
  }
  return problem;
}

double neuroshard::optimumMs(const ShardingProblem &problem,
                             const CostModel &model,
                             const ObjectiveOptions &options) {
  return Exhaustive(problem, model, options).run();
}
