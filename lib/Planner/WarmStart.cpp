//===- WarmStart.cpp - A plan that starts from yesterday's ----------------===//

#include "Algorithms.h"
#include "Migration.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

/// Searches that share the deadline.
constexpr double kSearches = 2;

/// A plan, what it costs, and what changing to it takes.
struct Candidate {
  SearchResult result;
  std::string what;
  /// Cost of a step with the time of moving spread over the horizon.
  double spreadMs = 0;
};

class WarmSearch {
public:
  WarmSearch(const ShardingProblem &problem, const CostModel &model,
             const SearchOptions &options)
      : problem(problem), model(model), options(options),
        warm(*options.warmStart), plain(options) {
    plain.warmStart.reset();
    if (options.deadlineSeconds)
      plain.deadlineSeconds = *options.deadlineSeconds / kSearches;
  }

  tl::expected<SearchResult, Diagnosis> run();

private:
  void judgePrevious();
  void tryCarriedOver();
  SearchResult renamed(SearchResult result) const;
  void consider(SearchResult result, const std::string &what);
  SearchResult finish();

  const ShardingProblem &problem;
  const CostModel &model;
  const SearchOptions &options;
  const WarmStart &warm;
  SearchOptions plain;
  std::optional<double> previousCostMs;
  std::string whyNotPrevious;
  std::vector<Candidate> candidates;
  int64_t evaluations = 0;
  double seconds = 0;
};

/// Does the previous plan serve as it is, and at what cost?
void WarmSearch::judgePrevious() {
  ShardingPlan plan = warm.previous;
  plan.fingerprint = tableFingerprint(problem.tables);
  plan.optimizerSemantics = problem.optimizerSemantics;
  Diagnostics errors = verify(plan, problem);
  if (errors.empty())
    previousCostMs = evaluate(problem, plan, model, options.objective).costMs;
  else
    whyNotPrevious = errors.front().str();
}

void WarmSearch::consider(SearchResult result, const std::string &what) {
  result.migration = migrationBetween(problem, warm.previous, result.plan);
  evaluations += result.evaluations;
  seconds += result.seconds;
  double spread =
      result.breakdown.costMs + result.migration->moveMs / warm.horizonSteps;
  candidates.push_back({std::move(result), what, spread});
}

/// All that can stay stays; only what is new finds a place.
void WarmSearch::tryCarriedOver() {
  ShardingProblem around = problem;
  for (Shard &shard : shardsToKeep(problem, warm.previous))
    around.constraints.fixedShards.push_back(std::move(shard));
  if (around.constraints.fixedShards.size() ==
      problem.constraints.fixedShards.size())
    return;
  auto carried = search(around, model, plain);
  if (!carried)
    return;
  // What was fixed for the search is not fixed by the problem.
  carried->lowerBoundMs = lowerBoundMs(problem, model, options.objective);
  carried->plan.provenance.lowerBoundMs = carried->lowerBoundMs;
  consider(*std::move(carried), "the previous plan carried over");
}

/// Where the names of devices do not matter, those that move least.
SearchResult WarmSearch::renamed(SearchResult result) const {
  ShardingPlan plan = renameDevices(problem, warm.previous, result.plan);
  // Hosts may be shared in ways that the groups do not show.
  if (!verify(plan, problem).empty())
    return result;
  result.plan = std::move(plan);
  result.breakdown = evaluate(problem, result.plan, model, options.objective);
  result.memory = planMemory(problem, result.plan.shards);
  return result;
}

std::string describe(const Candidate &candidate) {
  const Migration &migration = *candidate.result.migration;
  return candidate.what + ": " + formatMs(candidate.result.breakdown.costMs) +
         ", moves " + formatBytes(migration.bytes) + " in " +
         formatMs(migration.moveMs);
}

/// Why one plan and not the other.
std::string compare(const Candidate &best, const Candidate &other) {
  double saves = best.result.breakdown.costMs - other.result.breakdown.costMs;
  double takes = other.result.migration->moveMs - best.result.migration->moveMs;
  std::string text = "not " + describe(other);
  char note[96] = "";
  if (saves > 0)
    std::snprintf(note, sizeof note,
                  "; what it saves a step pays for its moves after %.3g steps",
                  std::ceil(takes / saves));
  return text + note;
}

SearchResult WarmSearch::finish() {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return a.spreadMs < b.spreadMs;
                   });
  const Candidate &best = candidates.front();
  SearchResult result = best.result;
  result.migration->previousCostMs = previousCostMs;
  result.migration->whyNotPrevious = whyNotPrevious;
  char horizon[64];
  std::snprintf(horizon, sizeof horizon, " (horizon: %.3g steps)",
                warm.horizonSteps);
  result.explanation.push_back("chosen: " + describe(best) + horizon);
  for (size_t i = 1; i < candidates.size(); ++i)
    result.explanation.push_back(compare(best, candidates[i]));
  for (const Candidate &candidate : candidates)
    result.tried.push_back(describe(candidate));
  std::snprintf(horizon, sizeof horizon, "%g", warm.horizonSteps);
  result.plan.provenance.settings.emplace_back("horizon_steps", horizon);
  result.evaluations = evaluations;
  result.seconds = seconds;
  return result;
}

tl::expected<SearchResult, Diagnosis> WarmSearch::run() {
  judgePrevious();
  tryCarriedOver();
  auto fresh = search(problem, model, plain);
  if (!fresh && candidates.empty())
    return fresh;
  if (fresh)
    consider(renamed(*std::move(fresh)), "a plan made afresh");
  return finish();
}

} // namespace

tl::expected<SearchResult, Diagnosis>
neuroshard::searchFromPrevious(const ShardingProblem &problem,
                               const CostModel &model,
                               const SearchOptions &options) {
  return WarmSearch(problem, model, options).run();
}
