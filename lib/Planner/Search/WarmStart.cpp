//===- WarmStart.cpp - Planning from a previous plan ----------------------===//

#include "WarmStart.h"

#include "AlgorithmRun.h"
#include "NearPlan.h"
#include "Replan/FitRanges.h"
#include "Replan/KeepShards.h"
#include "Replan/Migration.h"
#include "Replan/RenameDevices.h"
#include "neuroshard/Planner/Migrate.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

using namespace neuroshard;

namespace {

/// Number of searches that share the deadline.
constexpr double kSearches = 4;
/// Shares of the kept bytes that are released in turn until new tables fit.
constexpr double kReleased[] = {0, 0.02, 0.1, 0.3};

/// A plan with its cost and that of migrating to it.
struct Candidate {
  SearchResult result;
  std::string what;
  /// Cost of a training step + migration time / steps of the horizon.
  double spreadMs = 0;
};

class WarmSearch {
public:
  WarmSearch(const ShardingProblem &problem, const CostModel &model,
             const SearchOptions &options)
      : problem(problem), model(model), options(options),
        warm(*options.warmStart), plain(options) {
    warm.previous = withoutCopies(std::move(warm.previous));
    plain.warmStart.reset();
    if (options.deadlineSeconds)
      plain.deadlineSeconds = *options.deadlineSeconds / kSearches;
  }

  tl::expected<SearchResult, PlanningError> run();

private:
  std::optional<ShardingPlan> tryCarriedOver();
  void tryNear(const ShardingPlan &carried);
  tl::expected<SearchResult, PlanningError> tryFresh();
  void rename(SearchState &state) const;
  void consider(SearchResult result, const std::string &what);
  SearchResult finish();

  const ShardingProblem &problem;
  const CostModel &model;
  const SearchOptions &options;
  WarmStart warm; ///< with the devices of withoutCopies().
  SearchOptions plain;
  Migration previous; ///< its cost, without moves.
  /// One sentence for each table that cannot stay.
  std::vector<std::string> released;
  std::vector<Candidate> candidates;
  int64_t evaluations = 0;
  double seconds = 0;
};

void WarmSearch::consider(SearchResult result, const std::string &what) {
  ShardingPlan found = result.plan;
  fitRanges(problem, warm.previous, result.plan);
  keepNames(problem, warm.previous, result.plan);
  // A plan that breaks a rule with the old ranges and names goes without them.
  if (!verify(result.plan, problem).empty())
    result.plan = std::move(found);
  result.migration =
      migrationBetween(problem, options.warmStart->previous, result.plan);
  evaluations += result.evaluations;
  seconds += result.seconds;
  double spread =
      result.breakdown.costMs + result.migration->moveMs / warm.horizonSteps;
  candidates.push_back({std::move(result), what, spread});
}

/// Keeps all shards that can stay, and places new tables and released ones.
std::optional<ShardingPlan> WarmSearch::tryCarriedOver() {
  Kept kept = keepWhatServes(problem, model, plain, warm.previous);
  for (double share : kReleased) {
    Kept less = share > 0 ? keepLess(problem, kept, share) : kept;
    if (less.shards.empty())
      return std::nullopt;
    ShardingProblem around = problem;
    around.constraints.fixedShards.insert(around.constraints.fixedShards.end(),
                                          less.shards.begin(),
                                          less.shards.end());
    auto carried = search(around, model, plain);
    if (!carried)
      continue;
    released = less.released;
    ShardingPlan plan = carried->plan;
    // The kept shards were fixed for this search only, so explain and bound the
    // plan without fixing them.
    auto free = [&](const SearchContext &context,
                    const std::vector<UnitPtr> &units) {
      return placeAsPlanned(context, units, plan);
    };
    if (auto again = runSearch(problem, model, plain, free)) {
      carried = std::move(again);
    } else {
      carried->lowerBoundMs = lowerBoundMs(problem, model, options.objective);
      if (carried->lowerBoundMs > 0)
        carried->plan.provenance.lowerBoundMs = carried->lowerBoundMs;
      carried->explanation.clear();
    }
    consider(*std::move(carried), "the previous plan carried over");
    return plan;
  }
  return std::nullopt;
}

/// Improves the carried-over plan by edits that pay for their moves. The cost
/// of a byte depends on how many devices send at once, so both extremes are
/// tried.
void WarmSearch::tryNear(const ShardingPlan &carried) {
  double slowest = problem.topology.levels.front().bandwidthGBps;
  for (const TopologyLevel &level : problem.topology.levels)
    slowest = std::min(slowest, level.bandwidthGBps);
  double msPerByte = 1 / (slowest * 1e6) / warm.horizonSteps;
  for (double together :
       {1.0, static_cast<double>(problem.topology.deviceCount())}) {
    auto run = [&](const SearchContext &context,
                   const std::vector<UnitPtr> &units) {
      return searchNear(context, units, carried, warm.previous,
                        msPerByte / together);
    };
    if (auto near = runSearch(problem, model, plain, run))
      consider(*std::move(near), together == 1
                                     ? "a plan near it"
                                     : "a plan near it, moving more freely");
  }
}

/// Makes a plan from nothing; then numbers equal devices so that the fewest
/// bytes move.
tl::expected<SearchResult, PlanningError> WarmSearch::tryFresh() {
  auto run = [&](const SearchContext &context,
                 const std::vector<UnitPtr> &units) {
    SearchOutcome outcome = runAlgorithm(context, units);
    if (outcome.state)
      rename(*outcome.state);
    return outcome;
  };
  auto fresh = runSearch(problem, model, plain, run);
  if (fresh)
    consider(*fresh, "a plan made afresh");
  return fresh;
}

void WarmSearch::rename(SearchState &state) const {
  std::vector<int> names = deviceNames(problem, warm.previous, state.plan());
  SearchState renamed(state.context(), state.units());
  for (size_t i = 0; i < state.units().size(); ++i) {
    int forced = state.units()[i]->forcedDevice;
    if (forced >= 0)
      return;
    if (forced == -1)
      renamed.place(i, names[static_cast<size_t>(state.deviceOf(i))]);
  }
  // Other numbers may break memory of shared hosts, which the groups do not
  // show, or TorchRec's order of row blocks.
  if (renamed.withinMemory() && verify(renamed.plan(), problem).empty())
    state = std::move(renamed);
}

std::string describe(const Candidate &candidate) {
  const Migration &migration = *candidate.result.migration;
  return candidate.what + ": " + formatMs(candidate.result.breakdown.costMs) +
         ", moves " + formatBytes(migration.bytes) + " in " +
         formatMs(migration.moveMs);
}

/// Why a plan that takes less time with its moves is not chosen.
std::string whyNotFaster(const Candidate &best, const Candidate &other,
                         double tolerance) {
  double saves = best.spreadMs - other.spreadMs;
  char note[224];
  std::snprintf(note, sizeof note,
                "; with its moves spread over the horizon a step is predicted "
                "%.3g ms (%.2g %%) shorter, which is within the tolerance of "
                "%.3g %%, and of such plans the one that moves least is chosen",
                saves, 100 * saves / best.spreadMs, 100 * tolerance);
  return note;
}

/// Explains the choice among the candidates.
std::string compare(const Candidate &best, const Candidate &other,
                    double tolerance) {
  if (other.spreadMs < best.spreadMs)
    return "not " + describe(other) + whyNotFaster(best, other, tolerance);
  double saves = best.result.breakdown.costMs - other.result.breakdown.costMs;
  double takes = other.result.migration->moveMs - best.result.migration->moveMs;
  std::string text = "not " + describe(other);
  char note[96] = "";
  if (saves > 0 && takes > 0)
    std::snprintf(note, sizeof note,
                  "; what it saves a step pays for its moves after %.3g steps",
                  std::ceil(takes / saves));
  return text + note;
}

SearchResult WarmSearch::finish() {
  double lowest = candidates.front().spreadMs;
  for (const Candidate &candidate : candidates)
    lowest = std::min(lowest, candidate.spreadMs);
  auto rank = [&](const Candidate &candidate) {
    bool good = candidate.spreadMs <= lowest * (1 + warm.tolerance);
    int64_t bytes = good ? candidate.result.migration->bytes : 0;
    return std::tuple(!good, bytes, candidate.spreadMs);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate &a, const Candidate &b) {
                     return rank(a) < rank(b);
                   });
  const Candidate &best = candidates.front();
  SearchResult result = best.result;
  result.migration->previousCostMs = previous.previousCostMs;
  result.migration->whyNotPrevious = previous.whyNotPrevious;
  char horizon[64];
  std::snprintf(horizon, sizeof horizon, " (horizon: %.3g steps)",
                warm.horizonSteps);
  result.explanation.push_back("chosen: " + describe(best) + horizon);
  result.explanation.insert(result.explanation.end(), released.begin(),
                            released.end());
  for (size_t i = 1; i < candidates.size(); ++i)
    result.explanation.push_back(compare(best, candidates[i], warm.tolerance));
  for (const Candidate &candidate : candidates)
    result.tried.push_back(describe(candidate));
  result.evaluations = evaluations;
  result.seconds = seconds;
  return result;
}

tl::expected<SearchResult, PlanningError> WarmSearch::run() {
  previous = pricePrevious(problem, options.warmStart->previous, model,
                           options.objective);
  if (std::optional<ShardingPlan> carried = tryCarriedOver())
    tryNear(*carried);
  auto fresh = tryFresh();
  return candidates.empty() ? fresh : finish();
}

} // namespace

tl::expected<SearchResult, PlanningError>
neuroshard::searchFromPrevious(const ShardingProblem &problem,
                               const CostModel &model,
                               const SearchOptions &options) {
  return WarmSearch(problem, model, options).run();
}
