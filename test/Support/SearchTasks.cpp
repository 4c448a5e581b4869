//===- SearchTasks.cpp - Generated tasks for searches ---------------------===//

#include "SearchTasks.h"

#include "neuroshard/Support/Random.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

using namespace neuroshard;

namespace {

constexpr double kPi = 3.14159265358979323846;

/// A number in (0, 1), whose logarithm is finite.
double positive(MersenneTwister &random) {
  return (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
}

double normal(MersenneTwister &random) {
  double radius = std::sqrt(-2 * std::log(positive(random)));
  return radius * std::cos(2 * kPi * positive(random));
}

std::string numbered(const char *prefix, size_t number) {
  std::string name = prefix;
  name += std::to_string(number);
  return name;
}

double bytesOf(const Table &table) {
  return 4 * static_cast<double>(table.rows) * static_cast<double>(table.dim);
}

void addTable(ShardingProblem &problem, int64_t rows, int64_t dim,
              double pooling) {
  Table table;
  table.name = numbered("t", problem.tables.size());
  table.rows = rows;
  table.dim = dim;
  Feature feature;
  feature.name = table.name + "_id";
  feature.table = static_cast<int>(problem.tables.size());
  feature.meanPooling = pooling;
  problem.tables.push_back(table);
  problem.features.push_back(feature);
}

/// Halves the rows of tables that a device could hardly hold.
double shrinkLargest(ShardingProblem &problem, int devices, double fill) {
  while (true) {
    double total = 0;
    for (const Table &table : problem.tables)
      total += bytesOf(table);
    double limit =
        std::max(0.9 * total / fill / devices,
                 1.5 * total / static_cast<double>(problem.tables.size()));
    auto large = std::find_if(problem.tables.begin(), problem.tables.end(),
                              [&](const Table &table) {
                                return bytesOf(table) > limit && table.rows > 1;
                              });
    if (large == problem.tables.end())
      return total;
    large->rows /= 2;
  }
}

} // namespace

ShardingProblem neuroshard::randomTask(const TaskSettings &settings,
                                       uint64_t seed) {
  MersenneTwister random(seed);
  ShardingProblem problem;
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = 65536;
  int tables = random.between(settings.minTables, settings.maxTables);
  int devices = random.between(settings.minDevices, settings.maxDevices);
  for (int i = 0; i < tables; ++i) {
    double rows = std::pow(10, 2 + 5.08 * positive(random));
    int64_t dim = int64_t{4} << random.between(0, 5);
    double pooling = 4.4 * std::exp(settings.poolingSpread * normal(random));
    addTable(problem, static_cast<int64_t>(rows), dim,
             std::max(1.125, std::round(8 * pooling) / 8));
  }
  double total = shrinkLargest(problem, devices, settings.fill);
  problem.topology =
      *parseTopology(numbered("", static_cast<size_t>(devices)) + "xH200");
  for (Device &device : problem.topology.devices)
    device.memoryBytes = static_cast<int64_t>(total / settings.fill / devices);
  return problem;
}

std::vector<double> neuroshard::driftFactors(size_t count, double spread,
                                             uint64_t seed) {
  MersenneTwister random(seed);
  std::vector<double> factors;
  for (size_t i = 0; i < count; ++i)
    factors.push_back(std::exp(spread * normal(random)));
  return factors;
}

KnownTask neuroshard::taskFromPlan(double fill, uint64_t seed) {
  MersenneTwister random(seed);
  KnownTask task;
  ShardingProblem &problem = task.problem;
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = 4096;
  int devices = random.between(2, 12);
  problem.topology =
      *parseTopology(numbered("", static_cast<size_t>(devices)) + "xH200");
  const int64_t memory = int64_t{64} << 20;
  for (Device &device : problem.topology.devices)
    device.memoryBytes = memory;
  const int64_t full = static_cast<int64_t>(fill * static_cast<double>(memory));
  std::vector<int64_t> used(static_cast<size_t>(devices));
  task.plan.deviceCount = devices;
  // Ends when no device has room for another piece.
  for (int misses = 0; misses < 20;) {
    int pieces = random.between(1, devices);
    int64_t width = 4 * random.between(1, 8);
    int64_t rows =
        static_cast<int64_t>(std::pow(10, 2 + 3.5 * positive(random))) + 1;
    bool byRows = random.between(0, 1) == 1;
    int64_t bytes = 4 * rows * width;
    std::vector<int> order(used.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return used[static_cast<size_t>(a)] < used[static_cast<size_t>(b)];
    });
    int last = order[static_cast<size_t>(pieces) - 1];
    if (used[static_cast<size_t>(last)] + bytes > full) {
      ++misses;
      continue;
    }
    std::string name = numbered("t", problem.tables.size());
    addTable(problem, byRows ? rows * pieces : rows,
             byRows ? width : width * pieces, 1.0 + random.between(0, 20));
    for (int i = 0; i < pieces; ++i) {
      int device = order[static_cast<size_t>(i)];
      used[static_cast<size_t>(device)] += bytes;
      Shard shard;
      shard.name = numbered("s", task.plan.shards.size());
      shard.table = name;
      shard.rowBegin = byRows ? i * rows : 0;
      shard.rowEnd = shard.rowBegin + rows;
      shard.colBegin = byRows ? 0 : i * width;
      shard.colEnd = shard.colBegin + width;
      shard.devices = {device};
      task.plan.shards.push_back(shard);
    }
  }
  task.plan.optimizerSemantics = problem.optimizerSemantics;
  return task;
}
