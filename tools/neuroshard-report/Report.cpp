//===- Report.cpp - A plan as tables a person can read --------------------===//

#include "Report.h"

#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Search.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <map>

namespace neuroshard {

std::string format(const char *pattern, ...) {
  std::array<char, 512> line;
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(line.data(), line.size(), pattern, arguments);
  va_end(arguments);
  return line.data();
}

namespace {

double gib(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(int64_t(1) << 30);
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

static void printMigration(const Migration &migration, std::ostream &out) {
  if (migration.previousCostMs)
    out << format("previous plan: %.3f ms\n", *migration.previousCostMs);
  else
    out << "previous plan does not serve: " << migration.whyNotPrevious << "\n";
  out << "moves " << formatBytes(migration.bytes)
      << format(" in %.3f ms\n", migration.moveMs);
  for (const TableMove &move : migration.moves)
    out << "  '" << move.table << "' " << formatBytes(move.bytes) << ": "
        << move.what << "\n";
}

void printExplanation(const SearchResult &result, std::ostream &out) {
  for (const SnapshotCost &snapshot : result.breakdown.snapshots)
    out << format("snapshot '%s' (%.0f %%): %.3f ms\n", snapshot.name.c_str(),
                  100 * snapshot.share, snapshot.costMs);
  if (!result.breakdown.snapshots.empty())
    out << format("mean %.3f ms, worst %.3f ms\n", result.breakdown.costMs,
                  result.breakdown.worstMs());
  if (!result.explanation.empty())
    out << "\nwhy\n";
  for (const std::string &line : result.explanation)
    out << "  " << line << "\n";
  if (!result.stopReason.empty())
    out << "  the search ended: " << result.stopReason << "\n";
  if (result.migration)
    printMigration(*result.migration, out);
}

void printBaselines(const ShardingProblem &problem, const ShardingPlan &plan,
                    const CostModel &model, const SearchOptions &search,
                    std::ostream &out) {
  CostBreakdown own = evaluate(problem, plan, model, search.objective);
  out << baselineLine("this plan", own, own.costMs);
  for (Algorithm algorithm : allAlgorithms()) {
    bool missing = algorithm == Algorithm::DreamShard && !search.policy;
    if (algorithm == Algorithm::Default || missing)
      continue;
    std::string name(toString(algorithm));
    SearchOptions options = search;
    options.algorithm = algorithm;
    options.warmStart.reset();
    auto result = neuroshard::search(problem, model, options);
    if (result)
      out << baselineLine(name.c_str(), result->breakdown, own.costMs);
    else
      out << format("%-12s no plan: %s\n", name.c_str(),
                    result.error().message.c_str());
  }
  out << format("lower bound  %8.3f ms\n",
                lowerBoundMs(problem, model, search.objective));
}

} // namespace neuroshard
