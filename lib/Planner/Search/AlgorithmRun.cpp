//===- AlgorithmRun.cpp - One algorithm, from problem to result -----------===//

#include "AlgorithmRun.h"

#include "Baselines/Baselines.h"
#include "ChooseCopies.h"
#include "ChooseRoutes.h"
#include "DefaultSearch.h"
#include "Explain/Explain.h"
#include "Explain/Infeasibility.h"
#include "Forms/EvenColumns.h"
#include "HotRows/ChooseHotRows.h"
#include "HotRows/RowOrder.h"
#include "InitialUnits/InitialUnits.h"
#include "InitialUnits/NestedSearch.h"
#include "LocalSearch/RandomRestarts.h"
#include "Units/UnitStore.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Progress once there is a plan, as a share of the whole search.
constexpr double kPlanEnd = 0.99;

/// Routes, copies and hot rows: what cuts and places of a search leave open.
/// A context of its own for tables whose rows are in the order of their use,
/// which `context` has in none. Returns a sentence on each that has changed the
/// plan.
std::vector<std::string> chooseBesideCuts(const ShardingProblem &problem,
                                          const SearchContext &context,
                                          ShardingPlan &plan) {
  std::vector<std::string> chosen;
  auto add = [&](std::optional<std::string> line) {
    if (line)
      chosen.push_back(std::move(*line));
  };
  bool isDefault = context.options.algorithm == Algorithm::Default;
  auto choose = [&](const SearchContext &exact) {
    add(chooseRoutes(exact, plan));
    if (isDefault)
      add(chooseCopies(exact, plan));
  };
  if (!hasRowsByUse(problem)) {
    choose(context);
    return chosen;
  }
  SearchOptions rest = optionsWithin(context, 1, 0, 1);
  SearchContext exact(problem, context.model, rest, context.widths);
  choose(exact);
  if (isDefault)
    add(chooseHotRows(exact, plan));
  return chosen;
}

SearchResult finish(const ShardingProblem &problem,
                    const SearchContext &context, SearchOutcome outcome) {
  context.beginPhase("explaining the plan", kPlanEnd, 1);
  SearchResult result;
  result.plan = outcome.state->plan();
  std::vector<std::string> chosen =
      chooseBesideCuts(problem, context, result.plan);
  result.breakdown =
      evaluate(problem, result.plan, context.model, context.options.objective);
  result.memory = planMemory(problem, result.plan.shards);
  result.lowerBoundMs =
      lowerBoundMs(problem, context.model, context.options.objective);
  result.explanation = std::move(outcome.explanation);
  for (std::string &line : chosen)
    result.explanation.push_back(std::move(line));
  for (std::string &line : explainCuts(context, problem, result.plan))
    result.explanation.push_back(std::move(line));
  result.tried = std::move(outcome.tried);
  result.stopReason = std::move(outcome.stopReason);
  result.evaluations = outcome.evaluations;
  Provenance &provenance = result.plan.provenance;
  provenance.algorithm = toString(context.options.algorithm);
  provenance.objective = toString(context.options.objective.kind);
  provenance.costModel = context.model.name();
  provenance.predictedCostMs = result.breakdown.costMs;
  if (result.lowerBoundMs > 0)
    provenance.lowerBoundMs = result.lowerBoundMs;
  provenance.seed = context.options.seed;
  result.seconds = context.seconds();
  return result;
}

/// Verifies the plan, since algorithms do not follow every rule (for a partly
/// hand-written table under a target, say). A plan that breaks one is an error.
PlanningError diagnoseInvalid(const Diagnostics &errors, Target target,
                              Algorithm algorithm) {
  PlanningError error;
  error.limit = target == Target::Native ? Limit::Constraint : Limit::Target;
  error.message = "no plan follows every rule: " + errors.front().str();
  // The default search has tried other forms; other algorithms have one.
  if (algorithm != Algorithm::Default) {
    error.limit = Limit::Algorithm;
    error.message = "algorithm '";
    error.message.append(toString(algorithm))
        .append("' found no plan that follows every rule: ")
        .append(errors.front().str());
  }
  for (size_t i = 1; i < std::min<size_t>(errors.size(), 6); ++i)
    error.details.push_back(errors[i].str());
  error.advice = "relax the constraint named, complete the shards written "
                 "by hand, or use target native";
  return error;
}

/// A result, or why there is none, and whether a better plan broke a rule.
struct Attempt {
  tl::expected<SearchResult, PlanningError> result;
  bool brokeRule = false;
};

Attempt attempt(const ShardingProblem &problem, const SearchContext &context,
                const SearchRun &run) {
  tl::expected<std::vector<UnitPtr>, PlanningError> units =
      initialUnits(context);
  if (!units)
    return {tl::unexpected(units.error())};
  if (std::optional<PlanningError> impossible = findImpossible(context, *units))
    return {tl::unexpected(*impossible)};
  SearchOutcome outcome = run(context, *units);
  if (!outcome.state)
    return {tl::unexpected(
        diagnoseFailure(context, *units, outcome.blocking.get()))};
  outcome.state.emplace(withEvenColumns(std::move(*outcome.state)));
  bool brokeRule = outcome.brokeRule;
  SearchResult result = finish(problem, context, std::move(outcome));
  // A search for many devices leaves millions of units, which take seconds to
  // free; this goes on reporting progress.
  context.store().clear([&] { context.deadlinePassed(); });
  Diagnostics errors = verify(result.plan, problem);
  if (!errors.empty())
    return {tl::unexpected(diagnoseInvalid(errors, problem.target,
                                           context.options.algorithm)),
            true};
  return {std::move(result), brokeRule};
}

/// Whether a plan may cut some table so that its shards exchange norms.
bool exchangesNorms(const SearchContext &context) {
  for (size_t i = 0; i < context.problem.tables.size(); ++i) {
    const TableRules &rules = context.rulesOf(static_cast<int>(i));
    if (rules.exactRows && rules.allows(ShardingKind::RowColumn))
      return true;
  }
  return false;
}

} // namespace

SearchOutcome neuroshard::runAlgorithm(const SearchContext &context,
                                       const std::vector<UnitPtr> &units,
                                       Restarts restarts) {
  switch (context.options.algorithm) {
  case Algorithm::Default: {
    SearchOutcome outcome = searchDefault(context, units);
    if (!outcome.state ||
        !verify(outcome.state->plan(), context.problem).empty())
      restartRandomly(context, units, outcome, restarts);
    return outcome;
  }
  case Algorithm::Published:
    return searchPublished(context, units);
  case Algorithm::DreamShard:
    return searchDreamShard(context, units);
  case Algorithm::TorchRec:
    return searchTorchRec(context, units);
  case Algorithm::Threshold:
    return searchDistributedEmbeddings(context, units);
  case Algorithm::Random:
    return placeRandomly(context, units);
  default:
    return placeGreedilyByKey(context, units, context.options.algorithm);
  }
}

/// `searched`: the problem as the search sees it.
static tl::expected<SearchResult, PlanningError>
runSearchOf(const ShardingProblem &problem, const ShardingProblem &searched,
            const CostModel &model, const SearchOptions &options,
            const SearchRun &run) {
  // Bands of whole rows beside bands cut by columns make the best plans, but a
  // band alone does not tell what its table's norms need. So first they are
  // free and the plan is verified; if it needs more room, they are equal.
  SearchContext context(searched, model, options, RowWidths::Free);
  Attempt first = attempt(problem, context, run);
  if (!first.brokeRule || !exchangesNorms(context))
    return first.result;
  SearchOptions rest = options;
  if (rest.deadlineSeconds)
    rest.deadlineSeconds =
        std::max(0.0, *rest.deadlineSeconds - context.seconds());
  Attempt second = attempt(problem, SearchContext(searched, model, rest), run);
  bool better =
      second.result && (!first.result || second.result->breakdown.costMs <
                                             first.result->breakdown.costMs);
  return better ? second.result : first.result;
}

tl::expected<SearchResult, PlanningError>
neuroshard::runSearch(const ShardingProblem &problem, const CostModel &model,
                      const SearchOptions &options, const SearchRun &run) {
  if (!hasRowsByUse(problem))
    return runSearchOf(problem, problem, model, options, run);
  if (options.algorithm != Algorithm::Default)
    return runSearchOf(problem, withoutRowOrder(problem), model, options, run);
  // Blocks of rows that are best with even shares of the ids may not be, or not
  // fit, with theirs.
  SearchOptions half = options;
  if (options.deadlineSeconds)
    half.deadlineSeconds = *options.deadlineSeconds / 2;
  auto blocks =
      runSearchOf(problem, withoutRowOrder(problem), model, half, run);
  auto columns =
      runSearchOf(problem, withoutRowCuts(problem), model, half, run);
  if (!columns)
    return blocks;
  if (!blocks)
    return columns;
  bool isBetter = columns->breakdown.costMs < blocks->breakdown.costMs;
  SearchResult &better = isBetter ? *columns : *blocks;
  const SearchResult &other = isBetter ? *blocks : *columns;
  better.evaluations += other.evaluations;
  better.seconds += other.seconds;
  return std::move(better);
}
