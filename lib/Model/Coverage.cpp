//===- Coverage.cpp - Exact cover of a table by shards --------------------===//

#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Drift.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <algorithm>
#include <iterator>
#include <map>

using namespace neuroshard;

namespace {

std::string range(const char *what, int64_t begin, int64_t end) {
  return std::string(what) + " [" + std::to_string(begin) + ", " +
         std::to_string(end) + ")";
}

/// Shards that cover the sweep's current row, by first column.
using ActiveColumns = std::map<int64_t, const Shard *>;

/// Visits the shards in row order: enter when its rows begin, leave when they
/// end; at one row all leave before any enters. Between rows calls `between`
/// with the rows over which nothing changes; false stops the sweep.
template <typename Enter, typename Leave, typename Between>
void sweepRows(const std::vector<const Shard *> &shards, Enter enter,
               Leave leave, Between between) {
  std::vector<const Shard *> begins = shards, ends = shards;
  std::stable_sort(begins.begin(), begins.end(),
                   [](auto *a, auto *b) { return a->rowBegin < b->rowBegin; });
  std::stable_sort(ends.begin(), ends.end(),
                   [](auto *a, auto *b) { return a->rowEnd < b->rowEnd; });
  size_t begin = 0, end = 0;
  int64_t row = 0;
  while (end < ends.size()) {
    int64_t next = ends[end]->rowEnd;
    if (begin < begins.size())
      next = std::min(next, begins[begin]->rowBegin);
    if (next > row && !between(row, next))
      return;
    row = next;
    for (; end < ends.size() && ends[end]->rowEnd == row; ++end)
      leave(ends[end]);
    for (; begin < begins.size() && begins[begin]->rowBegin == row; ++begin)
      enter(begins[begin]);
  }
}

/// First columns not covered by the active shards.
std::string firstColumnGap(const Table &table, const ActiveColumns &active) {
  int64_t column = 0;
  for (auto &[begin, shard] : active) {
    if (begin > column)
      return range("cols", column, begin);
    column = shard->colEnd;
  }
  return range("cols", column, table.dim);
}

} // namespace

std::string neuroshard::formatRange(const Shard &shard) {
  return range("rows", shard.rowBegin, shard.rowEnd) + " " +
         range("cols", shard.colBegin, shard.colEnd);
}

void neuroshard::checkReplica(const Table &table, const Shard &shard,
                              int deviceCount, const std::string &where,
                              Diagnostics &errors) {
  if (!shard.hasCopies())
    return;
  if (shard.rows() != table.rows || shard.width() != table.dim)
    errors.push_back({where, "only a whole table can be replicated, got: " +
                                 formatRange(shard)});
  if (static_cast<int>(shard.devices.size()) != deviceCount)
    errors.push_back(
        {where, "a replicated table must be on all " +
                    std::to_string(deviceCount) +
                    " devices, got: " + std::to_string(shard.devices.size())});
}

void neuroshard::checkShardShape(const Table &table, const Shard &shard,
                                 int deviceCount, const std::string &where,
                                 Diagnostics &errors) {
  if (shard.rowBegin < 0 || shard.rowEnd > table.rows ||
      shard.rowBegin >= shard.rowEnd)
    errors.push_back({where, "rows must be a non-empty range inside [0, " +
                                 std::to_string(table.rows) + "), got: " +
                                 range("rows", shard.rowBegin, shard.rowEnd)});
  if (shard.colBegin < 0 || shard.colEnd > table.dim ||
      shard.colBegin >= shard.colEnd)
    errors.push_back({where, "columns must be a non-empty range inside [0, " +
                                 std::to_string(table.dim) + "), got: " +
                                 range("cols", shard.colBegin, shard.colEnd)});
  for (int64_t boundary : {shard.colBegin, shard.colEnd})
    if (boundary != table.dim && boundary % kColumnAlignment != 0)
      errors.push_back({where, "inner column boundary must be a multiple of " +
                                   std::to_string(kColumnAlignment) +
                                   ", got: " + std::to_string(boundary)});
  if (shard.devices.empty())
    errors.push_back({where, "a shard needs at least one device"});
  for (int device : shard.devices)
    if (device < 0 || device >= deviceCount)
      errors.push_back({where, "devices must be in [0, " +
                                   std::to_string(deviceCount) +
                                   "), got: " + std::to_string(device)});
  std::vector<int> sorted = shard.devices;
  std::sort(sorted.begin(), sorted.end());
  auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated != sorted.end())
    errors.push_back({where, "device " + std::to_string(*repeated) +
                                 " is listed more than once"});
}

void neuroshard::checkOverlap(const Table &table,
                              const std::vector<const Shard *> &shards,
                              Diagnostics &errors) {
  ActiveColumns active;
  auto report = [&](const Shard *a, const Shard *b) {
    errors.push_back({"table '" + table.name + "'",
                      "shards '" + a->name + "' (" + formatRange(*a) +
                          ") and '" + b->name + "' (" + formatRange(*b) +
                          ") overlap"});
  };
  auto enter = [&](const Shard *shard) {
    auto next = active.lower_bound(shard->colBegin);
    if (next != active.end() && next->first < shard->colEnd)
      return report(next->second, shard);
    if (next != active.begin() &&
        std::prev(next)->second->colEnd > shard->colBegin)
      return report(std::prev(next)->second, shard);
    active.emplace(shard->colBegin, shard);
  };
  auto leave = [&](const Shard *shard) {
    auto found = active.find(shard->colBegin);
    if (found != active.end() && found->second == shard)
      active.erase(found);
  };
  sweepRows(shards, enter, leave, [](int64_t, int64_t) { return true; });
}

void neuroshard::checkGaps(const Table &table,
                           const std::vector<const Shard *> &shards,
                           Diagnostics &errors) {
  __extension__ using Area = __int128;
  Area area = 0;
  for (const Shard *shard : shards)
    area += Area(shard->rows()) * shard->width();
  if (area == Area(table.rows) * table.dim)
    return;

  ActiveColumns active;
  int64_t activeWidth = 0;
  int64_t swept = 0;
  std::string gap;
  auto enter = [&](const Shard *shard) {
    active.emplace(shard->colBegin, shard);
    activeWidth += shard->width();
  };
  auto leave = [&](const Shard *shard) {
    active.erase(shard->colBegin);
    activeWidth -= shard->width();
  };
  auto between = [&](int64_t begin, int64_t end) {
    swept = end;
    if (activeWidth == table.dim)
      return true;
    gap = range("rows", begin, end) + " " + firstColumnGap(table, active);
    return false;
  };
  sweepRows(shards, enter, leave, between);
  if (gap.empty())
    gap = range("rows", swept, table.rows) + " " + range("cols", 0, table.dim);
  errors.push_back({"table '" + table.name + "'",
                    "no shard covers " + gap +
                        "; every element must be covered exactly once"});
}

std::string neuroshard::hostTierError(const Topology &topology, int device) {
  if (!isCpu(topology, topology.devices[static_cast<size_t>(device)]))
    return "";
  return "tier dram is for GPUs: the memory of device " +
         std::to_string(device) +
         ", a CPU, is that of its host; use hbm or ssd";
}

void neuroshard::checkTier(const ShardingProblem &problem, const Shard &shard,
                           const std::string &where, Diagnostics &errors) {
  if (!runsTier(problem.target, shard.tier)) {
    errors.push_back({where, tierError(problem.target, shard.tier)});
    return;
  }
  if (std::string text = cacheError(shard.tier, shard.cache, shard.rows(),
                                    static_cast<int64_t>(shard.devices.size()));
      !text.empty())
    errors.push_back({where, text});
  if (shard.tier != Tier::Dram)
    return;
  bool hasCache = hasRowCache(problem.target, shard.tier);
  if (hasCache && shard.cache.rows == 0)
    errors.push_back({where, "a shard in tier dram needs a cache for target " +
                                 std::string(toString(problem.target))});
  if (!hasCache && shard.cache.rows > 0)
    errors.push_back({where, "target " + std::string(toString(problem.target)) +
                                 " sizes caches itself, found one of " +
                                 std::to_string(shard.cache.rows) + " rows"});
  for (int device : shard.devices)
    if (std::string text = hostTierError(problem.topology, device);
        hasCache && !text.empty())
      errors.push_back({where, text});
}

void neuroshard::checkRoutes(const ShardingProblem &problem, size_t table,
                             const std::vector<const Shard *> &shards,
                             Diagnostics &errors) {
  if (shards.empty())
    return;
  const Shard &first = *shards.front();
  auto error = [&](std::string message) {
    errors.push_back(
        {"table '" + problem.tables[table].name + "'", std::move(message)});
  };
  for (const Shard *shard : shards)
    if (shard->route != first.route)
      return error("its results travel one way: shard '" + first.name +
                   "' has route " + std::string(toString(first.route)) +
                   ", shard '" + shard->name + "' " +
                   std::string(toString(shard->route)));
  if (first.route != Route::Relay)
    return;
  for (const Shard *shard : shards)
    if (isCopied(problem.tables[table], *shard, problem.topology.deviceCount()))
      return error("relays serve all groups, and the copies of shard '" +
                   shard->name +
                   "' some ranks each; expected route auto or direct, got: "
                   "relay");
  std::string found =
      "expected route auto or direct, got: relay of shard '" + first.name + "'";
  if (problem.target != Target::Native)
    return error("target " + std::string(toString(problem.target)) +
                 " has no relays; " + found);
  bool read = false, pooled = false;
  for (const Feature &feature : problem.features)
    if (static_cast<size_t>(feature.table) == table) {
      read = true;
      pooled |= feature.pooling != Pooling::None;
    }
  if (read && !pooled)
    error("results without pooling never go by relay; " + found);
}

std::string neuroshard::driftError(const ShardingProblem &problem,
                                   size_t table) {
  if (problem.target != Target::Native)
    return "target " + std::string(toString(problem.target)) +
           " has no copies that drift; leave out sync_every";
  if (problem.tables[table].dynamicIds)
    return "copies of a table with dynamic ids cannot drift, since rows get "
           "other ids in the meantime; leave out sync_every";
  return optimizerDriftError(problem.tables[table].optimizer);
}

static SyncedCopies copiesOf(const Shard &shard) {
  return {shard.syncEvery, std::ssize(shard.devices)};
}

void neuroshard::checkSync(const ShardingProblem &problem, size_t table,
                           const std::vector<const Shard *> &shards,
                           Diagnostics &errors) {
  if (std::ranges::none_of(
          shards, [](const Shard *shard) { return shard->syncEvery != 0; }))
    return;
  const Table &source = problem.tables[table];
  auto error = [&](const std::string &where, std::string message) {
    errors.push_back({where, std::move(message)});
  };
  bool columnSplit = false;
  for (const Shard *shard : shards) {
    std::string where = "shard '" + shard->name + "'";
    columnSplit |= shard->width() != source.dim;
    if (std::string text = syncError(
            shard->syncEvery, static_cast<int64_t>(shard->devices.size()));
        !text.empty())
      return error(where, text);
    if (std::string text =
            driftMismatch(copiesOf(*shards.front()), copiesOf(*shard));
        !text.empty())
      return error(where, text);
  }
  std::string where = "table '" + source.name + "'";
  if (std::string text = driftError(problem, table); !text.empty())
    return error(where, text);
  if (needsNormExchange(source.optimizer.kind, problem.optimizerSemantics,
                        columnSplit))
    error(where, "copies cannot drift where columns exchange norms of rows (" +
                     std::string(toString(source.optimizer.kind)) +
                     " with exact semantics, cut by columns); leave out "
                     "sync_every, do not cut columns, or ask for per_shard "
                     "semantics");
}
