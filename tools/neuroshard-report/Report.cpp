//===- Report.cpp - A plan as tables a person can read --------------------===//

#include "Report.h"

#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Search.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

namespace neuroshard {

namespace {

double gib(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(int64_t(1) << 30);
}

template <typename... Values>
std::string format(const char *pattern, Values... values) {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(), pattern, values...);
  return line.data();
}

std::vector<int> shardsPerDevice(const ShardingPlan &plan) {
  std::vector<int> counts(plan.deviceCount);
  for (const Shard &shard : plan.shards)
    for (int device : shard.devices)
      ++counts[device];
  return counts;
}

/// "20 table_wise, 6 column_wise".
std::string kindsOf(const ShardingProblem &problem, const ShardingPlan &plan) {
  std::map<std::string, std::vector<const Shard *>> shardsOfTable;
  for (const Shard &shard : plan.shards)
    shardsOfTable[shard.table].push_back(&shard);
  std::vector<int> groups = groupOfDevices(problem.topology.levels.back());
  std::map<ShardingKind, int> counts;
  for (const Table &table : problem.tables)
    ++counts[classify(table, shardsOfTable[table.name], groups)];
  std::string text;
  for (auto [kind, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
            std::string(toString(kind));
  return text;
}

double largestDeviceTotalMs(const CostBreakdown &cost) {
  double largest = 0;
  for (const DeviceCost &device : cost.devices)
    largest = std::max(largest, device.compute.total());
  return largest;
}

std::string baselineLine(const char *name, const CostBreakdown &cost,
                         double ownMs) {
  return format("%-12s %8.3f ms   %5.2f x   largest compute %8.3f ms\n", name,
                cost.costMs, cost.costMs / ownMs, largestDeviceTotalMs(cost));
}

} // namespace

void printDevices(const ShardingProblem &problem, const ShardingPlan &plan,
                  const CostBreakdown &cost, std::ostream &out) {
  MemoryReport memory = planMemory(problem, plan.shards);
  std::vector<int> shards = shardsPerDevice(plan);
  out << format("%zu tables in %zu shards on %d devices, global batch %lld\n",
                problem.tables.size(), plan.shards.size(),
                problem.topology.deviceCount(),
                static_cast<long long>(problem.batch.globalSize));
  out << format(
      "                     | memory, GiB                             "
      "            | compute, ms    | communication, ms\n");
  out << format("%-3s %-10s %6s | %8s %6s %6s %8s %7s %7s | %7s %7s | %6s %7s "
                "%7s\n",
                "dev", "class", "shards", "weights", "state", "batch",
                "reserve", "total", "usable", "forward", "backwd", "ids",
                "forward", "backwd");
  for (int i = 0; i < problem.topology.deviceCount(); ++i) {
    const Device &device = problem.topology.devices[i];
    const MemoryTerms &terms = memory.devices[i];
    const DeviceCost &ms = cost.devices[i];
    int64_t reserves = terms.communicatorBytes + terms.denseReserveBytes +
                       terms.fragmentationReserveBytes;
    int64_t batch = terms.peakBytes() - reserves - terms.weightsBytes -
                    terms.optimizerStateBytes;
    out << format("%-3d %-10s %6d | %8.2f %6.2f %6.2f %8.2f %7.2f %7.2f | "
                  "%7.3f %7.3f | %6.3f %7.3f %7.3f\n",
                  i, device.deviceClass.c_str(), shards[i],
                  gib(terms.weightsBytes), gib(terms.optimizerStateBytes),
                  gib(batch), gib(reserves), gib(terms.peakBytes()),
                  gib(device.memoryBytes), ms.compute.forwardMs,
                  ms.compute.backwardMs, ms.inputMs, ms.forwardCommunicationMs,
                  ms.backwardCommunicationMs);
  }
  out << "tables: " << kindsOf(problem, plan) << "\n";
}

void printBaselines(const ShardingProblem &problem, const ShardingPlan &plan,
                    const CostModel &model, const ObjectiveOptions &objective,
                    std::ostream &out) {
  CostBreakdown own = evaluate(problem, plan, model, objective);
  out << baselineLine("this plan", own, own.costMs);
  for (Algorithm algorithm : allAlgorithms()) {
    if (algorithm == Algorithm::Default)
      continue;
    std::string name(toString(algorithm));
    SearchOptions options;
    options.algorithm = algorithm;
    options.objective = objective;
    auto result = search(problem, model, options);
    if (result)
      out << baselineLine(name.c_str(), result->breakdown, own.costMs);
    else
      out << format("%-12s no plan: %s\n", name.c_str(),
                    result.error().message.c_str());
  }
  out << format("lower bound  %8.3f ms\n",
                lowerBoundMs(problem, model, objective));
}

} // namespace neuroshard
