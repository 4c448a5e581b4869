//===- Dispatch.cpp - search(): checks the input, then runs ---------------===//

#include "Explain/Infeasibility.h"
#include "Forms/RowGroups.h"
#include "Replan/Migration.h"
#include "RunSearch.h"
#include "WarmStart.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// More than any machine makes use of.
constexpr int kMaxThreads = 1024;

Diagnostics checkOptions(const SearchOptions &options) {
  Diagnostics errors;
  const PublishedSettings &settings = options.published;
  auto want = [&](const char *where, double value, double low) {
    if (!(value >= low && value <= 1e6))
      errors.push_back(
          {where, "expected a number in [" + std::to_string(low) +
                      ", 1000000], got: " + std::to_string(value)});
  };
  want("published.candidates", settings.candidates, 1);
  want("published.beam_width", settings.beamWidth, 1);
  want("published.depth", settings.depth, 0);
  want("published.grid_points", settings.gridPoints, 1);
  want("published.grid_begin", settings.gridBegin, 0);
  want("published.grid_end", settings.gridEnd, settings.gridBegin);
  if (options.threads < 0 || options.threads > kMaxThreads)
    errors.push_back({"threads", "expected a whole number in [0, " +
                                     std::to_string(kMaxThreads) + "], got: " +
                                     std::to_string(options.threads)});
  if (options.deadlineSeconds)
    want("deadline", *options.deadlineSeconds, 0);
  want("policy_samples", options.policySamples, 0);
  if (options.algorithm == Algorithm::DreamShard && !options.policy)
    errors.push_back({"policy",
                      "algorithm dreamshard needs a placement policy; "
                      "pass one, such as the shipped "
                      "placement_policy.safetensors"});
  if (options.warmStart) {
    double horizon = options.warmStart->horizonSteps;
    if (!(horizon > 0 && horizon <= 1e15))
      errors.push_back({"horizon_steps",
                        "expected a number above 0 and at most 1e15, got: " +
                            std::to_string(horizon)});
    double tolerance = options.warmStart->tolerance;
    if (!(tolerance >= 0 && tolerance <= 1))
      errors.push_back({"tolerance", "expected a number in [0, 1], got: " +
                                         std::to_string(tolerance)});
    Diagnostics more = checkPrevious(options.warmStart->previous);
    errors.insert(errors.end(), more.begin(), more.end());
  }
  if (options.evaluationBudget < 0)
    errors.push_back(
        {"evaluation_budget", "expected at least 0, got: " +
                                  std::to_string(options.evaluationBudget)});
  return errors;
}

/// Also plans with a group chosen for each table whose rows stay inside one,
/// and takes the cheaper plan.
tl::expected<SearchResult, Diagnosis>
searchBothWays(const ShardingProblem &problem, const ShardingProblem &grouped,
               const CostModel &model, const SearchOptions &options) {
  SearchOptions half = options, rest = options;
  if (options.deadlineSeconds)
    half.deadlineSeconds = rest.deadlineSeconds = *options.deadlineSeconds / 2;
  auto inGroups = runSearch(grouped, model, half, runAlgorithm);
  auto plain = runSearch(problem, model, rest, runAlgorithm);
  bool better = inGroups && (!plain || inGroups->breakdown.costMs <
                                           plain->breakdown.costMs);
  if (!better || !verify(inGroups->plan, problem).empty())
    return plain;
  inGroups->explanation.insert(
      inGroups->explanation.begin(),
      "tables whose rows may be cut inside one group only got a group each");
  return inGroups;
}

} // namespace

tl::expected<SearchResult, Diagnosis>
neuroshard::search(const ShardingProblem &problem, const CostModel &model,
                   const SearchOptions &options) {
  Diagnostics errors = check(problem);
  for (const Diagnostics &more :
       {checkOptions(options), checkObjective(model, options.objective)})
    errors.insert(errors.end(), more.begin(), more.end());
  if (!errors.empty())
    return tl::unexpected(diagnoseBadInput(errors));
  if (options.warmStart)
    return searchFromPrevious(problem, model, options);
  if (options.algorithm == Algorithm::Default)
    if (auto grouped = withRowGroups(problem, model))
      return searchBothWays(problem, *grouped, model, options);
  return runSearch(problem, model, options, runAlgorithm);
}
