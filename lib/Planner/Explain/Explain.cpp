//===- Explain.cpp - Sentences that explain a plan ------------------------===//
///
/// \file
/// Each cut is compared with its opposite: OtherPlacements.
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "Units/SearchOutcome.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Planner/OtherPlacement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

using namespace neuroshard;

namespace {

/// Number of tables with a line of their own; the others share lines.
constexpr size_t kMaxExplained = 64;
constexpr size_t kMaxListed = 8;
constexpr size_t kMaxNames = 4;

using Shards = std::vector<const Shard *>;

std::string joinSizes(const Shards &shards, bool columns) {
  std::string text;
  for (const Shard *shard : shards)
    text += (text.empty() ? "" : " + ") +
            std::to_string(columns ? shard->width() : shard->rows());
  return text + (columns ? " columns" : " rows");
}

/// "4 shards by columns: 32 + 32 + 32 + 32 columns".
std::string describeCut(const Table &table, const Shards &shards) {
  // A row shard may have all columns, and a column shard all rows.
  bool columns = std::ranges::any_of(
      shards, [&](const Shard *one) { return one->width() != table.dim; });
  bool rows = std::ranges::any_of(
      shards, [&](const Shard *one) { return one->rows() != table.rows; });
  std::string text = std::to_string(shards.size()) + " shards by " +
                     (columns && rows ? "rows and columns"
                      : columns       ? "columns"
                                      : "rows");
  if (shards.size() <= kMaxListed && columns != rows)
    text += ": " + joinSizes(shards, columns);
  return text;
}

/// "rows [0, 1000), which get 73 % of the lookups, on 4 devices, the others in
/// 2 shards by rows: 500 + 500 rows"; nothing of other forms.
std::optional<std::string> describeHotRows(const Table &table,
                                           const Shards &shards) {
  auto isHot = [](const Shard *one) { return one->hasCopies(); };
  if (shards.size() < 2 || !hasRowsByUse(table) ||
      std::ranges::count_if(shards, isHot) != 1)
    return std::nullopt;
  const Shard &hot = **std::ranges::find_if(shards, isHot);
  if (hot.rowBegin > 0)
    return std::nullopt;
  Shards cold = shards;
  std::erase_if(cold, isHot);
  double share = lookupShareOfRows(table, 0, hot.rowEnd);
  std::string text =
      "hot: rows [0, " + std::to_string(hot.rowEnd) + "), which get " +
      std::to_string(std::lround(100 * share)) +
      " % of the lookups, are copied to " + std::to_string(hot.devices.size()) +
      " devices, the others ";
  return text +
         (cold.size() == 1
              ? "on device " + std::to_string(cold.front()->devices.front())
              : "in " + describeCut(table, cold));
}

/// "on every device", "copied to 2 devices", "cut into 4 shards ...".
std::string describeForm(const SearchContext &context, const Table &table,
                         const Shards &shards) {
  if (isReplicated(table, *shards.front(), context.deviceCount))
    return "on every device";
  if (std::optional<std::string> hot = describeHotRows(table, shards))
    return *hot;
  size_t copies = 1;
  for (const Shard *shard : shards)
    copies = std::max(copies, shard->devices.size());
  std::string copied =
      copies > 1 ? "copied to " + std::to_string(copies) + " devices" : "";
  if (shards.front()->copiesDrift())
    copied += ", averaged every " + std::to_string(shards.front()->syncEvery) +
              " steps (not exact)";
  if (shards.size() == 1)
    return copied;
  return "cut into " + describeCut(table, shards) +
         (copied.empty() ? "" : ", " + copied);
}

/// Tables that are cut alike share a line.
std::vector<std::string> summarize(const SearchContext &context,
                                   const std::vector<Table> &sources,
                                   const std::vector<int> &tables,
                                   const std::map<int, Shards> &shardsOfTable) {
  std::map<std::string, std::vector<int>> tablesOfForm;
  for (int table : tables)
    tablesOfForm[describeForm(context, sources[static_cast<size_t>(table)],
                              shardsOfTable.at(table))]
        .push_back(table);
  std::vector<std::string> lines;
  for (const auto &[form, members] : tablesOfForm) {
    std::string line = std::to_string(members.size()) +
                       (members.size() == 1 ? " table (" : " tables (");
    for (size_t i = 0; i < members.size() && i < kMaxNames; ++i)
      line += (i ? ", " : "") + context.table(members[i]).name;
    line += members.size() > kMaxNames ? ", ...) " : ") ";
    lines.push_back(line + form);
  }
  return lines;
}

} // namespace

std::vector<std::string> neuroshard::explainCuts(const SearchContext &context,
                                                 const ShardingProblem &problem,
                                                 const ShardingPlan &plan) {
  std::map<int, Shards> shardsOfTable;
  for (const Shard &shard : plan.shards)
    shardsOfTable[context.tableIndex(shard.table)].push_back(&shard);
  std::erase_if(shardsOfTable, [](const auto &entry) {
    const Shards &shards = entry.second;
    return shards.size() == 1 && !shards.front()->hasCopies();
  });
  std::unique_ptr<OtherPlacements> others;
  std::vector<std::string> lines;
  std::vector<int> rest;
  for (const auto &[table, shards] : shardsOfTable) {
    if (lines.size() == kMaxExplained || context.deadlinePassed()) {
      rest.push_back(table);
      continue;
    }
    if (!others)
      others = std::make_unique<OtherPlacements>(problem, plan, context.model,
                                                 context.options.objective);
    const Table &source = problem.tables[static_cast<size_t>(table)];
    lines.push_back("table '" + source.name + "' is " +
                    describeForm(context, source, shards) + "; " +
                    others->whole(table).text);
  }
  std::vector<std::string> shared =
      summarize(context, problem.tables, rest, shardsOfTable);
  lines.insert(lines.end(), shared.begin(), shared.end());
  return lines;
}

std::vector<std::string>
neuroshard::explainBottleneck(const SearchContext &context,
                              const ShardingPlan &plan,
                              const CostBreakdown &cost) {
  constexpr size_t kMaxShards = 4;
  auto slowest = [&](auto value) {
    int worst = 0;
    for (int device = 1; device < context.deviceCount; ++device)
      if (value(cost.devices[static_cast<size_t>(device)]) >
          value(cost.devices[static_cast<size_t>(worst)]))
        worst = device;
    return worst;
  };
  auto name = [&](const char *what, auto value) {
    int device = slowest(value);
    return "device " + std::to_string(device) + " in " + what + " (" +
           formatMs(value(cost.devices[static_cast<size_t>(device)])) + ")";
  };
  auto compute = [](const DeviceCost &at) { return at.compute.total(); };
  int worst = slowest(compute);
  std::string bottleneck = "bottleneck: ";
  if (context.options.objective.kind == ObjectiveKind::Published) {
    bottleneck +=
        name("compute and exchanges together", [](const DeviceCost &at) {
          return at.compute.total() + at.forwardCommunicationMs +
                 at.backwardCommunicationMs;
        });
  } else if (context.problem.mode == StepMode::Inference) {
    bottleneck +=
        name("lookups",
             [](const DeviceCost &at) { return at.compute.forwardMs; }) +
        ", " + name("the exchange of results", [](const DeviceCost &at) {
          return at.forwardCommunicationMs;
        });
  } else {
    bottleneck +=
        name("forward compute",
             [](const DeviceCost &at) { return at.compute.forwardMs; }) +
        ", " +
        name("backward compute",
             [](const DeviceCost &at) { return at.compute.backwardMs; }) +
        ", " +
        name("the forward exchange",
             [](const DeviceCost &at) { return at.forwardCommunicationMs; }) +
        ", " + name("the backward exchange", [](const DeviceCost &at) {
          return at.backwardCommunicationMs;
        });
  }
  if (context.options.objective.kind != ObjectiveKind::Published) {
    auto fetch = [](const DeviceCost &at) { return at.fetchMs; };
    if (std::ranges::any_of(cost.devices, fetch))
      bottleneck += ", " + name("fetching rows", fetch) +
                    ", of which the step "
                    "waits " +
                    formatMs(cost.fetchMs);
  }
  std::vector<std::string> lines = {bottleneck};
  PlanWork work = describePlan(context.problem, plan);
  std::vector<std::pair<double, const ShardWork *>> shards;
  const ShardSet &all = work.sets[static_cast<size_t>(worst)];
  for (const ShardWork *shard : all.shards) {
    ShardSet alone{all.deviceClass, {shard}};
    ComputeMs time;
    context.model.computeMs({&alone, 1}, {&time, 1});
    shards.push_back({time.total(), shard});
  }
  std::stable_sort(
      shards.begin(), shards.end(),
      [](const auto &a, const auto &b) { return a.first > b.first; });
  std::string line;
  for (size_t i = 0; i < std::min(kMaxShards, shards.size()); ++i) {
    const auto &[ms, shard] = shards[i];
    line += (i ? ", '" : "'") + context.table(shard->table).name + "' (" +
            std::to_string(shard->rows) + " x " + std::to_string(shard->width) +
            ", alone " + formatMs(ms) + ")";
  }
  if (!line.empty())
    lines.push_back("costliest of " + std::to_string(shards.size()) +
                    " shards on device " + std::to_string(worst) +
                    ", which computes longest: " + line);
  return lines;
}
