//===- SearchContext.cpp - A problem and all that searches derive ---------===//

#include "SearchContext.h"

#include "ComputeCache.h"
#include "SearchThreads.h"
#include "TargetRules.h"
#include "UnitStore.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <numeric>
#include <thread>

using namespace neuroshard;

struct SearchContext::Progress {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<const char *> phase = "starting";
  std::atomic<double> begin = 0, end = 0, share = 0;
  std::atomic<double> bestMs = std::numeric_limits<double>::infinity();
  std::atomic<bool> stopped = false;
  /// Only the caller's thread reads and writes it.
  double lastSeconds = 0;
};

static int threadsFor(const SearchOptions &options) {
  return options.threads > 0 ? options.threads
                             : static_cast<int>(std::max(
                                   1u, std::thread::hardware_concurrency()));
}

/// The problem at a snapshot, with memory of the worst snapshot.
static ShardingProblem periodOf(const ShardingProblem &given, size_t snapshot,
                                const ShardingProblem &summary) {
  ShardingProblem period = atSnapshot(given, snapshot);
  for (size_t i = 0; i < period.features.size(); ++i)
    period.features[i].p99Pooling = summary.features[i].p99Pooling;
  return period;
}

static std::optional<const ShardingProblem>
summaryOf(const ShardingProblem &problem) {
  if (problem.snapshots.empty())
    return std::nullopt;
  return summarized(problem);
}

SearchContext::SearchContext(const ShardingProblem &given,
                             const CostModel &model,
                             const SearchOptions &options)
    : summary(summaryOf(given)), problem(summary ? *summary : given),
      shares(snapshotShares(given)), model(model), options(options),
      deviceCount(problem.topology.deviceCount()),
      innerGroupOfDevice(groupOfDevices(problem.topology.levels.back())),
      features(featuresOfTables(problem)), rules(problem.tables.size()),
      pieces(std::make_unique<UnitStore>()),
      computes(std::make_unique<ComputeCache>()),
      threads(std::make_unique<SearchThreads>(threadsFor(options))),
      progress(std::make_unique<Progress>()),
      start(std::chrono::steady_clock::now()) {
  for (size_t i = 0; i < given.snapshots.size(); ++i)
    periods.push_back(periodOf(given, i, problem));
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, static_cast<int>(i));
  std::map<std::string_view, MemoryTerms> baseOfClass;
  for (int device = 0; device < deviceCount; ++device) {
    const std::string &name =
        problem.topology.devices[static_cast<size_t>(device)].deviceClass;
    const DeviceClass *deviceClass = findDeviceClass(name);
    auto used = std::find(usedClasses.begin(), usedClasses.end(), deviceClass);
    classIndices.push_back(static_cast<size_t>(used - usedClasses.begin()));
    if (used == usedClasses.end())
      usedClasses.push_back(deviceClass);
    auto [entry, inserted] = baseOfClass.try_emplace(name);
    if (inserted)
      entry->second = deviceBaseMemory(problem, device);
    base.push_back(entry->second);
  }
  collectRules();
  collectCoLocation();
}

SearchContext::~SearchContext() = default;

void SearchContext::collectRules() {
  const Constraints &constraints = problem.constraints;
  size_t devices = static_cast<size_t>(deviceCount);
  auto restrict = [&](int table, const std::vector<int> &listed, bool keep) {
    std::vector<bool> &mask = rules[static_cast<size_t>(table)].devices;
    mask.resize(devices, true);
    std::vector<bool> in(devices);
    for (int device : listed)
      in[static_cast<size_t>(device)] = true;
    for (size_t d = 0; d < devices; ++d)
      mask[d] = mask[d] && in[d] == keep;
  };
  for (const PinConstraint &pin : constraints.pins)
    restrict(pin.table, pin.devices, true);
  for (const ForbidConstraint &forbid : constraints.forbids)
    restrict(forbid.table, forbid.devices, false);
  for (const TableConstraint &constraint : constraints.tables) {
    TableRules &table = rules[static_cast<size_t>(constraint.table)];
    table.minWidth = constraint.minWidth;
    if (constraint.allowedKinds.empty())
      continue;
    table.kindsListed = true;
    table.allowed.fill(false);
    for (ShardingKind kind : constraint.allowedKinds)
      table.allowed[static_cast<size_t>(kind)] = true;
    // Native: row-wise inside one group is row-wise, too, and the reverse holds
    // where there is one group alone. On a single device a table is whole.
    auto also = [&](ShardingKind kind, bool allowed) {
      bool &entry = table.allowed[static_cast<size_t>(kind)];
      entry = entry || allowed;
    };
    bool oneGroup = innerGroupOfDevice.back() == 0;
    also(ShardingKind::TableRowWise,
         (oneGroup || problem.target == Target::Native) &&
             table.allows(ShardingKind::RowWise));
    also(ShardingKind::RowWise,
         oneGroup && table.allows(ShardingKind::TableRowWise));
    also(ShardingKind::TableWise, deviceCount == 1);
  }
  for (size_t i = 0; i < constraints.separate.size(); ++i)
    for (int table : constraints.separate[i])
      rules[static_cast<size_t>(table)].separateSets.push_back(
          static_cast<int>(i));
  for (const Shard &shard : constraints.fixedShards)
    rules[static_cast<size_t>(tableIndex(shard.table))].fixed = true;
  auto noteColumns = [&](std::span<const Shard> shards) {
    std::vector<bool> split = columnSplitTables(problem.tables, shards);
    for (size_t i = 0; i < rules.size(); ++i)
      rules[i].columnsCutBefore = rules[i].columnsCutBefore || split[i];
  };
  noteColumns(constraints.fixedShards);
  if (options.warmStart)
    noteColumns(options.warmStart->previous.shards);
  for (size_t i = 0; i < rules.size(); ++i)
    restrictKinds(static_cast<int>(i), rules[i]);
}

/// Forbids what TorchRec does not run.
void SearchContext::restrictForTorchRec(int index, TableRules &rule) const {
  const Table &source = table(index);
  auto forbid = [&](ShardingKind kind) {
    rule.allowed[static_cast<size_t>(kind)] = false;
  };
  const std::vector<int> &groups = problem.topology.levels.back().groupSizes;
  auto filled = [&](int devices) {
    return devices == 1 || devicesWithRows(source.rows, devices) == devices;
  };
  if (everyDeviceNeedsRows(problem)) {
    if (!filled(deviceCount))
      forbid(ShardingKind::RowWise);
    if (!std::ranges::all_of(groups, filled))
      forbid(ShardingKind::TableRowWise);
  }
  // Row blocks inside the first group alone are table-row-wise.
  if (groups.size() > 1 &&
      devicesWithRows(source.rows, deviceCount) <= groups[0])
    forbid(ShardingKind::RowWise);
  if (!columnsMustBeEqual(problem, index))
    return;
  // Halves only, since all column shards of the table must have one width.
  if (source.dim % (2 * kColumnAlignment) != 0 ||
      rule.minWidth > source.dim / 2)
    forbid(ShardingKind::ColumnWise);
  rule.minWidth = std::max(rule.minWidth, source.dim / 2);
}

/// Forbids the kinds that the target or the optimizer cannot run.
void SearchContext::restrictKinds(int index, TableRules &rule) const {
  const Table &source = table(index);
  bool torchRec = problem.target == Target::TorchRec19;
  bool exactRows = needsNormExchange(source.optimizer.kind,
                                     problem.optimizerSemantics, true);
  rule.exactRows = exactRows;
  // The exchanged norms are of gradients without weight decay.
  bool noNorms = exactRows && source.optimizer.weightDecay != 0;
  if (torchRec)
    restrictForTorchRec(index, rule);
  if (torchRec || noNorms)
    rule.allowed[static_cast<size_t>(ShardingKind::RowColumn)] = false;
  if ((torchRec && exactRows) || noNorms)
    rule.allowed[static_cast<size_t>(ShardingKind::ColumnWise)] = false;
}

void SearchContext::collectCoLocation() {
  std::vector<int> leader(rules.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](int table) {
    while (leader[static_cast<size_t>(table)] != table)
      table = leader[static_cast<size_t>(table)];
    return table;
  };
  for (const std::vector<int> &set : problem.constraints.coLocate)
    for (int table : set) {
      int a = find(set.front()), b = find(table);
      leader[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  for (const std::vector<int> &set : problem.constraints.coLocate)
    for (int table : set)
      rules[static_cast<size_t>(table)].coLocateLeader = find(table);
}

double SearchContext::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

bool SearchContext::deadlinePassed() const {
  if (options.progress)
    reportProgress();
  return progress->stopped.load(std::memory_order_relaxed) ||
         (options.deadlineSeconds && seconds() > *options.deadlineSeconds);
}

std::string SearchContext::whyStopped() const {
  return progress->stopped ? "ended by the progress callback" : "deadline";
}

void SearchContext::beginPhase(const char *phase, double begin,
                               double end) const {
  progress->phase = phase;
  progress->begin = begin;
  progress->end = end;
  progress->share = begin;
}

void SearchContext::noteShare(double shareOfPhase) const {
  double begin = progress->begin, end = progress->end;
  progress->share = begin + (end - begin) * shareOfPhase;
}

void SearchContext::noteCost(double costMs) const {
  double best = progress->bestMs;
  while (costMs < best &&
         !progress->bestMs.compare_exchange_weak(best, costMs)) {
  }
}

void SearchContext::reportProgress() const {
  constexpr double kInterval = 0.1;
  if (std::this_thread::get_id() != progress->caller)
    return;
  double now = seconds();
  if (now - progress->lastSeconds < kInterval || progress->stopped)
    return;
  progress->lastSeconds = now;
  SearchProgress report = {now, progress->share, progress->bestMs,
                           progress->phase.load()};
  if (!options.progress(report))
    progress->stopped = true;
}
