//===- SearchEntryPoint.cpp - search(): checks the input, then runs -------===//

#include "AlgorithmRun.h"
#include "Cost/ForwardModel.h"
#include "Cost/IdMaps.h"
#include "Explain/Explain.h"
#include "Explain/Infeasibility.h"
#include "Forms/GroupPins.h"
#include "LowerTiers/SearchTiers.h"
#include "Replan/KeepShards.h"
#include "Units/SearchContext.h"
#include "WarmStart.h"
#include "neuroshard/Artifact/IdMapSpans.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/Planner/Traffic.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace neuroshard;

namespace {

Diagnostics checkOptions(const SearchOptions &options) {
  Diagnostics errors = checkRanges(valuesOf(options));
  if (options.algorithm == Algorithm::DreamShard && !options.policy)
    errors.push_back({"policy",
                      "algorithm dreamshard needs a placement policy; "
                      "pass one, such as the shipped "
                      "placement_policy.safetensors"});
  if (options.warmStart) {
    Diagnostics more = checkPrevious(options.warmStart->previous);
    errors.insert(errors.end(), more.begin(), more.end());
  }
  return errors;
}

/// Adds to a plan's provenance the facts of the problem that the plan does not
/// show, and the settings of the search.
std::vector<std::pair<std::string, std::string>>
provenanceSettings(const ShardingProblem &problem,
                   const SearchOptions &options) {
  std::vector<std::pair<std::string, std::string>> settings = {
      {"batch", std::to_string(problem.batch.globalSize)},
      {"target", std::string(toString(problem.target))},
      {"memory_model", std::string(toString(problem.memoryModel))},
      {std::string(kWireType), toString(problem.batch.wireType)}};
  if (problem.mode != StepMode::Training)
    settings.emplace_back("mode", toString(problem.mode));
  const Reserves &reserves = problem.constraints.reserves;
  for (auto [name, bytes] :
       {std::pair("dense_reserve_bytes", reserves.denseBytes),
        std::pair("fragmentation_reserve_bytes", reserves.fragmentationBytes),
        std::pair("communicator_reserve_bytes", reserves.communicatorBytes)})
    if (bytes)
      settings.emplace_back(name, std::to_string(*bytes));
  for (auto &setting : settingsOf(options))
    settings.push_back(std::move(setting));
  return settings;
}

/// Runs the default search also on the problem of withGroupPins() and returns
/// the cheaper plan.
tl::expected<SearchResult, PlanningError>
searchBothWays(const ShardingProblem &problem, const ShardingProblem &grouped,
               const CostModel &model, const SearchOptions &options,
               const SearchRun &run) {
  SearchOptions half = options, rest = options;
  if (options.deadlineSeconds)
    half.deadlineSeconds = rest.deadlineSeconds = *options.deadlineSeconds / 2;
  auto inGroups = runSearch(grouped, model, half, run);
  auto plain = runSearch(problem, model, rest, run);
  bool better = inGroups && (!plain || inGroups->breakdown.costMs <
                                           plain->breakdown.costMs);
  if (!better || !verify(inGroups->plan, problem).empty())
    return plain;
  inGroups->explanation.insert(inGroups->explanation.begin(),
                               "chose a group for each table whose rows may be "
                               "cut inside one group only");
  return inGroups;
}

/// A wire type whose step is longer than the shortest by no more than this
/// share is taken if it is liked better.
constexpr double kWireTolerance = 0.01;

tl::expected<SearchResult, PlanningError>
searchMemory(const ShardingProblem &problem, const CostModel &model,
             const SearchOptions &options, Restarts restarts) {
  if (options.warmStart)
    return searchFromPrevious(problem, model, options);
  SearchRun run = [=](const SearchContext &context,
                      const std::vector<UnitPtr> &units) {
    return runAlgorithm(context, units, restarts);
  };
  if (options.algorithm == Algorithm::Default)
    if (auto grouped = withGroupPins(problem, model))
      return searchBothWays(problem, *grouped, model, options, run);
  return runSearch(problem, model, options, run);
}

tl::expected<SearchResult, PlanningError>
searchOneType(const ShardingProblem &problem, const CostModel &model,
              const SearchOptions &options) {
  Diagnostics errors = check(problem);
  for (const Diagnostics &more :
       {checkOptions(options), checkObjective(model, options.objective),
        checkMode(problem, model)})
    errors.insert(errors.end(), more.begin(), more.end());
  if (!errors.empty())
    return tl::unexpected(diagnoseBadInput(errors));
  auto result =
      searchTiers(problem, model, options,
                  [&](const ShardingProblem &tiered, const SearchOptions &given,
                      Restarts restarts) {
                    return searchMemory(tiered, model, given, restarts);
                  });
  if (!result)
    return result;
  SearchContext context(problem, model, options);
  for (std::string &line :
       explainBottleneck(context, result->plan, result->breakdown))
    result->explanation.push_back(std::move(line));
  if (problem.target == Target::Native)
    result->buffers = planBuffers(problem, result->plan.shards);
  result->plan.provenance.settings = provenanceSettings(problem, options);
  return result;
}

/// What the search of part `index` of `count` equal ones reports.
std::function<bool(const SearchProgress &)>
progressOfPart(const std::function<bool(const SearchProgress &)> &report,
               size_t index, size_t count) {
  if (!report)
    return {};
  return [=, &report](SearchProgress progress) {
    progress.share = (static_cast<double>(index) + progress.share) /
                     static_cast<double>(count);
    return report(progress);
  };
}

std::string travelText(WireType type) {
  if (type.results == type.gradients)
    return "results and gradients travel as " + toString(type);
  return std::string("results travel as ")
      .append(toString(type.results))
      .append(", gradients as ")
      .append(toString(type.gradients));
}

/// Searches with each wire type, and takes the first that is as good as the
/// best.
tl::expected<SearchResult, PlanningError>
searchTypes(const ShardingProblem &problem, const CostModel &model,
            const SearchOptions &options) {
  SearchOptions each = options;
  if (options.deadlineSeconds)
    each.deadlineSeconds = *options.deadlineSeconds /
                           static_cast<double>(options.wireTypes.size());
  std::vector<SearchResult> results;
  std::optional<PlanningError> failure;
  std::string steps;
  double bestMs = std::numeric_limits<double>::infinity(), seconds = 0;
  int64_t evaluations = 0;
  for (size_t i = 0; i < options.wireTypes.size(); ++i) {
    WireType type = options.wireTypes[i];
    ShardingProblem typed = problem;
    typed.batch.wireType = type;
    each.progress =
        progressOfPart(options.progress, i, options.wireTypes.size());
    auto result = searchOneType(typed, model, each);
    if (!result) {
      failure = std::move(result.error());
      continue;
    }
    // With the whole deadline.
    result->plan.provenance.settings = provenanceSettings(typed, options);
    bestMs = std::min(bestMs, result->breakdown.costMs);
    seconds += result->seconds;
    evaluations += result->evaluations;
    steps += (steps.empty() ? "" : ", ") + toString(type) + " " +
             shortestText(std::round(result->breakdown.costMs * 1e4) / 1e4) +
             " ms";
    results.push_back(std::move(*result));
  }
  if (results.empty())
    return tl::unexpected(std::move(*failure));
  auto chosen = std::ranges::find_if(results, [&](const SearchResult &result) {
    return result.breakdown.costMs <= bestMs * (1 + kWireTolerance);
  });
  chosen->explanation.insert(chosen->explanation.begin(),
                             travelText(*chosenWireType(chosen->plan)) +
                                 ": a step takes " + steps);
  chosen->seconds = seconds;
  chosen->evaluations = evaluations;
  return std::move(*chosen);
}

} // namespace

/// Takes what the maps of dynamic ids need from the hosts, and plans with the
/// rest.
static tl::expected<SearchResult, PlanningError>
searchBesideIdMaps(const ShardingProblem &problem, const CostModel &model,
                   const SearchOptions &options) {
  Diagnostics errors = check(problem);
  if (!errors.empty())
    return tl::unexpected(diagnoseBadInput(errors));
  std::vector<int64_t> maps = idMapMemory(problem);
  for (size_t host = 0; host < maps.size(); ++host)
    if (int64_t room = problem.topology.hosts[host].memoryBytes;
        maps[host] > room)
      return tl::unexpected(PlanningError{
          Limit::HostMemory,
          "maps of dynamic ids need " + formatBytes(maps[host]) +
              " of the memory of host " + std::to_string(host) +
              "; there are " + formatBytes(room),
          {},
          "take more hosts, or fewer rows or candidates of tables with dynamic "
          "ids"});
  IdMapsCost cost = idMapsCost(problem, model);
  auto result = search(withoutIdMaps(problem),
                       LongerSteps(model, cost.totalMs()), options);
  if (!result)
    return result;
  result->memory = planMemory(problem, result->plan.shards);
  int64_t most = *std::ranges::max_element(maps);
  result->explanation.push_back("maps of dynamic ids take up to " +
                                formatBytes(most) + " of a host's memory");
  auto text = [](double ms) {
    return shortestText(std::round(ms * 1e4) / 1e4) + " ms";
  };
  result->explanation.push_back(
      std::string(kIdMapsTerm) + " takes " + text(cost.totalMs()) +
      " of every step: " + kIdMapsExchange + " " + text(cost.exchangeMs) +
      ", " + kIdMapsLookUp + " " + text(cost.lookUpMs));
  return result;
}

static tl::expected<SearchResult, PlanningError>
searchAnyMode(const ShardingProblem &problem, const CostModel &given,
              const SearchOptions &options) {
  if (hasDynamicIds(problem))
    return searchBesideIdMaps(problem, given, options);
  ModelOfMode ofMode(problem, given);
  const CostModel &model = *ofMode;
  return options.wireTypes.empty() ? searchOneType(problem, model, options)
                                   : searchTypes(problem, model, options);
}

tl::expected<SearchResult, PlanningError>
neuroshard::search(const ShardingProblem &problem, const CostModel &model,
                   const SearchOptions &options) {
  SearchOptions watched = options;
  watched.progress = [&](const SearchProgress &progress) {
    return !model.answerError() &&
           (!options.progress || options.progress(progress));
  };
  auto result = searchAnyMode(problem, model, watched);
  if (std::optional<std::string> error = model.answerError())
    return tl::unexpected(diagnoseBadInput({{"cost_model", *error}}));
  return result;
}
