//===- SearchContext.cpp - A problem and all that searches derive ---------===//

#include "SearchContext.h"

#include "ComputeCache.h"
#include "Cost/RowDemands.h"
#include "PlanMemory/AverageMemory.h"
#include "PlanMemory/RelayMemory.h"
#include "SearchThreads.h"
#include "UnitStore.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <span>
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

static std::span<const Shard> previousShards(const SearchOptions &options) {
  if (!options.warmStart)
    return {};
  return options.warmStart->previous.shards;
}

SearchContext::SearchContext(const ShardingProblem &given,
                             const CostModel &model,
                             const SearchOptions &options, RowWidths widths)
    : summary(summaryOf(given)), problem(summary ? *summary : given),
      shares(snapshotShares(given)), model(model), options(options),
      deviceCount(problem.topology.deviceCount()), widths(widths),
      innerGroupOfDevice(groupOfDevices(problem.topology.levels.back())),
      features(featuresOfTables(problem)),
      rules(tableRules(problem, previousShards(options))),
      hostBase(idMapMemory(problem)), sharedByCaches(problem),
      ofProblem(std::make_unique<RowDemands>(problem, features)),
      pieces(std::make_unique<UnitStore>()),
      computes(std::make_unique<ComputeCache>()),
      threads(std::make_unique<SearchThreads>(threadsFor(options))),
      progress(std::make_unique<Progress>()) {
  for (size_t i = 0; i < given.snapshots.size(); ++i)
    periods.push_back(periodOf(given, i, problem));
  for (const ShardingProblem &period : periods)
    ofPeriods.push_back(std::make_unique<RowDemands>(period, features));
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, static_cast<int>(i));
  base = deviceBaseMemory(problem);
  int64_t relayed = roomForRelayedIds(problem);
  int64_t averages = roomForAverages(problem);
  for (MemoryTerms &terms : base) {
    terms.idsBytes += relayed;
    terms.backwardBytes += averages;
  }
  for (int device = 0; device < deviceCount; ++device) {
    const std::string &name =
        problem.topology.devices[static_cast<size_t>(device)].deviceClass;
    const DeviceClass *deviceClass = findDeviceClass(problem.topology, name);
    auto used = std::find(usedClasses.begin(), usedClasses.end(), deviceClass);
    classIndices.push_back(static_cast<size_t>(used - usedClasses.begin()));
    if (used == usedClasses.end())
      usedClasses.push_back(deviceClass);
  }
}

SearchContext::~SearchContext() = default;

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
