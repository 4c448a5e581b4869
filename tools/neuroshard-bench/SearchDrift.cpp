//===- SearchDrift.cpp - Replanning under drifting statistics -------------===//

#include "SearchReport.h"
#include "SearchTasks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace neuroshard {

namespace {

constexpr uint64_t kTasks = 10;
constexpr int kSnapshots = 3;
/// Standard deviation of the logarithm of what a pooling is multiplied by: from
/// one snapshot to the other, and for a small change.
constexpr double kSpread = 0.5;
constexpr double kSmallSpread = 0.01;
constexpr double kHorizonSteps = 1e4;
/// A warm start moves at most this share of what planning afresh moves, and
/// gives up at most this share of the cost, in geometric mean.
constexpr double kMoveAim = 0.1;
constexpr double kCostAim = 0.005;

class GeometricMean {
public:
  void add(double ratio) {
    logs += std::log(ratio);
    ++count;
  }
  double percentBelow() const {
    return count ? 100 * (1 - std::exp(logs / count)) : 0;
  }

private:
  double logs = 0;
  int count = 0;
};

SearchOptions optionsFor(const SearchBenchOptions &bench,
                         const CostModel &model) {
  SearchOptions options;
  options.threads = bench.threads;
  options.objective.kind = model.separatesBackward() ? ObjectiveKind::Step
                                                     : ObjectiveKind::Published;
  return options;
}

void addSnapshots(ShardingProblem &problem, uint64_t seed) {
  for (uint64_t i = 0; i < kSnapshots; ++i) {
    std::vector<double> factors =
        driftFactors(problem.features.size(), kSpread, seed * kSnapshots + i);
    Snapshot snapshot;
    snapshot.name = std::to_string(i);
    for (size_t f = 0; f < factors.size(); ++f) {
      const Feature &feature = problem.features[f];
      snapshot.features.push_back({static_cast<int>(f),
                                   feature.meanPooling * factors[f], 0,
                                   feature.presence});
    }
    problem.snapshots.push_back(std::move(snapshot));
  }
}

/// Weights that come to a device which did not hold them, and all weights.
struct Moved {
  double bytes = 0;
  double all = 0;

  double percent() const { return all > 0 ? 100 * bytes / all : 0; }
  void add(const ShardingProblem &problem, const ShardingPlan &before,
           const ShardingPlan &after);
};

int64_t overlap(int64_t begin, int64_t end, int64_t otherBegin,
                int64_t otherEnd) {
  return std::max<int64_t>(0, std::min(end, otherEnd) -
                                  std::max(begin, otherBegin));
}

void Moved::add(const ShardingProblem &problem, const ShardingPlan &before,
                const ShardingPlan &after) {
  for (const Shard &shard : after.shards)
    for (int device : shard.devices) {
      int64_t stays = 0;
      for (const Shard &old : before.shards)
        if (old.table == shard.table &&
            std::count(old.devices.begin(), old.devices.end(), device))
          stays +=
              overlap(old.rowBegin, old.rowEnd, shard.rowBegin, shard.rowEnd) *
              overlap(old.colBegin, old.colEnd, shard.colBegin, shard.colEnd);
      const Table &table =
          problem.tables[static_cast<size_t>(problem.tableIndex(shard.table))];
      double size =
          static_cast<double>(rowBytes(table.dim, table.elementType)) /
          static_cast<double>(table.dim);
      int64_t area = shard.rows() * shard.width();
      bytes += size * static_cast<double>(area - stays);
      all += size * static_cast<double>(area);
    }
}

/// What planning for the snapshots gains.
void reportMean(const SearchBenchOptions &bench, const std::string &name,
                SearchReport &report) {
  GeometricMean overMean, overOne, overWorst;
  double mostMs = 0;
  int compared = 0;
  for (uint64_t seed = 0; seed < kTasks; ++seed) {
    ShardingProblem problem = randomTask({}, seed);
    addSnapshots(problem, seed);
    std::unique_ptr<CostModel> model = mustMake(name, problem.topology);
    SearchOptions options = optionsFor(bench, *model);
    auto drift = search(problem, *model, options);
    auto mean = search(summarized(problem), *model, options);
    auto one = search(atSnapshot(problem, 0), *model, options);
    if (!drift || !mean || !one)
      continue;
    auto under = [&](const ShardingPlan &plan) {
      return evaluate(problem, plan, *model, options.objective);
    };
    CostBreakdown ours = drift->breakdown, theirs = under(mean->plan);
    overMean.add(ours.costMs / theirs.costMs);
    overWorst.add(ours.worstMs() / theirs.worstMs());
    overOne.add(ours.costMs / under(one->plan).costMs);
    mostMs = std::max(mostMs, ours.costMs / theirs.costMs);
    ++compared;
  }
  if (!compared)
    return report.figure("plans for " + std::to_string(kSnapshots) +
                             " snapshots, " + name,
                         "no plans", "plans", false);
  report.figure(
      format("plans for %d snapshots, %s", kSnapshots, name.c_str()),
      format("%.1f %% below plans for the mean statistics (the worst snapshot "
             "%.1f %%), %.1f %% below plans for one snapshot, in geometric "
             "mean of %d tasks",
             overMean.percentBelow(), overWorst.percentBelow(),
             overOne.percentBelow(), compared),
      "never above", compared == kTasks && mostMs <= 1 + 1e-9);
}

/// What a small change of the statistics moves. Much where a plan made afresh
/// happens to be better by more than the tolerance: then its moves pay.
void reportStability(const SearchBenchOptions &bench, const std::string &name,
                     double tolerance, SearchReport &report) {
  GeometricMean givenUp;
  Moved warmMoves, freshMoves;
  double most = 0;
  int compared = 0;
  for (uint64_t seed = 0; seed < kTasks; ++seed) {
    ShardingProblem problem = randomTask({}, seed);
    std::unique_ptr<CostModel> model = mustMake(name, problem.topology);
    SearchOptions options = optionsFor(bench, *model);
    auto before = search(problem, *model, options);
    std::vector<double> factors =
        driftFactors(problem.features.size(), kSmallSpread, seed);
    for (size_t f = 0; f < factors.size(); ++f)
      problem.features[f].meanPooling *= factors[f];
    auto fresh = search(problem, *model, options);
    if (!before || !fresh)
      continue;
    options.warmStart = {before->plan, kHorizonSteps, tolerance};
    auto warm = search(problem, *model, options);
    if (!warm)
      continue;
    freshMoves.add(problem, before->plan, fresh->plan);
    warmMoves.add(problem, before->plan, warm->plan);
    double ratio = warm->breakdown.costMs / fresh->breakdown.costMs;
    givenUp.add(ratio);
    most = std::max(most, ratio - 1);
    ++compared;
  }
  report.figure(
      format("bytes moved per percent of change, %s, tolerance %g %%",
             name.c_str(), 100 * tolerance),
      format("%.2f %% of all with a warm start, %.0f %% when planned afresh; "
             "cost %+.2f %% in geometric mean, %+.2f %% at most",
             warmMoves.percent(), freshMoves.percent(), -givenUp.percentBelow(),
             100 * most),
      format("a tenth; %g %% of cost in the mean", 100 * kCostAim),
      compared == kTasks && warmMoves.bytes < kMoveAim * freshMoves.bytes &&
          -givenUp.percentBelow() <= 100 * kCostAim);
}

} // namespace

void reportDrift(const SearchBenchOptions &options, SearchReport &report) {
  report.heading("Drift");
  report.line(format(
      "%d tasks as above. Snapshots: all poolings times a log-normal factor of "
      "spread %g, each on its own. Small change: all poolings times one of "
      "spread %g; the plan in use is for the poolings before, horizon %g "
      "steps.\n",
      static_cast<int>(kTasks), kSpread, kSmallSpread, kHorizonSteps));
  report.line("| figure | found | aim | |\n|---|---|---|---|");
  for (const char *name : {"reference", "roofline"}) {
    reportMean(options, name, report);
    reportStability(options, name, WarmStart().tolerance, report);
  }
}

} // namespace neuroshard
