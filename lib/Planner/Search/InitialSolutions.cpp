//===- InitialSolutions.cpp - Initial solutions of local search -----------===//

#include "InitialSolutions.h"

#include "Baselines/Baselines.h"
#include "Forms/EvenColumns.h"
#include "Forms/InitialCuts.h"
#include "Forms/Replicas.h"
#include "Forms/RowBlocks.h"
#include "Placement/Placement.h"
#include "Units/SearchThreads.h"

#include <cmath>

using namespace neuroshard;

namespace {

/// Up to this many units x devices, the published search adds a solution.
constexpr size_t kMaxPublishedSize = 1024;
/// Up to this many, planners that propose one form per table do so, too.
constexpr size_t kMaxComparedSize = 64;

Family familyOf(const CutRule &rule) {
  return !std::isfinite(rule.costShare) ? Family::Whole
         : rule.way == Way::Columns     ? Family::Columns
         : rule.way == Way::Rows        ? Family::Rows
         : rule.way == Way::Links       ? Family::Grid
                                        : Family::LessTraffic;
}

class InitialSolver {
public:
  InitialSolver(const SearchContext &context, SearchOutcome &outcome)
      : context(context), outcome(outcome) {}

  std::vector<InitialSolution> run(std::vector<UnitPtr> &units);

private:
  void replicateAll(const std::vector<UnitPtr> &units);
  void findReplicaStarts(const std::vector<UnitPtr> &units);
  void findRowBlockStarts(const std::vector<UnitPtr> &units);
  void addStartsOf(const std::vector<UnitPtr> &changed, Family family,
                   const char *what);
  void findAll(const std::vector<UnitPtr> &units);
  void greedyStarts(const std::vector<UnitPtr> &units);
  void keepSolution(const SearchState &found, const std::string &what,
                    Family family);
  void keepOutcome(const SearchOutcome &found, const std::string &what,
                   Family family);
  bool turnIntoRowBlocks(std::vector<UnitPtr> &units);

  const SearchContext &context;
  SearchOutcome &outcome;
  std::vector<InitialSolution> solutions;
  /// The units from which the next solutions are cut.
  std::shared_ptr<const std::vector<UnitPtr>> wholes;
};

void InitialSolver::keepSolution(const SearchState &found,
                                 const std::string &what, Family family) {
  ++outcome.evaluations;
  SearchState state = withEvenColumns(found);
  if (!state.withinMemory())
    return;
  double cost = state.costMs();
  context.noteCost(cost);
  outcome.tried.push_back(what + ": " + formatMs(cost));
  solutions.push_back({std::move(state), cost, what, family, wholes});
}

void InitialSolver::keepOutcome(const SearchOutcome &found,
                                const std::string &what, Family family) {
  if (found.state)
    keepSolution(*found.state, what, family);
}

/// Adds the best greedy placement over the caps for each rule of cuts.
void InitialSolver::greedyStarts(const std::vector<UnitPtr> &units) {
  std::vector<double> caps = gridCaps(context.options.published);
  caps.push_back(kNoCap);
  GreedyPlacer placer(context, caps);
  std::vector<CutRule> rules = cutRules(context);
  std::vector<GreedyJob> jobs(rules.size());
  bool needsOne = solutions.empty();
  context.pool().forEach(rules.size(), [&](size_t i) {
    if (context.deadlinePassed() && !(needsOne && i == 0))
      return;
    jobs[i].units = cutBy(context, rules[i], units);
    jobs[i].order = orderByCost(context, jobs[i].units);
    GreedyJob *one[] = {&jobs[i]};
    placer.run(one);
  });
  for (size_t i = 0; i < rules.size(); ++i) {
    outcome.evaluations += jobs[i].evaluations;
    std::string what = "greedy, " + rules[i].str();
    if (jobs[i].costMs < kInfiniteMs)
      keepSolution(stateOf(context, jobs[i]), what, familyOf(rules[i]));
    else if (jobs[i].evaluations > 0)
      outcome.tried.push_back(what.append(": no room"));
  }
}

/// Adds the solution with all tables replicated. It alone needs no exchange,
/// which adding replicas one by one does not find.
void InitialSolver::replicateAll(const std::vector<UnitPtr> &units) {
  std::vector<UnitPtr> replicated = allReplicated(context, units);
  if (replicated == units)
    return;
  wholes = std::make_shared<std::vector<UnitPtr>>(replicated);
  SearchState state(context, replicated);
  std::vector<size_t> order =
      movableByKey(state, [](const Unit &unit) { return unit.aloneMs(); });
  if (placeByKey(state, order, [](const Unit &unit) { return unit.aloneMs(); }))
    keepSolution(state, "replicas of all that may be", Family::Replicas);
}

void InitialSolver::addStartsOf(const std::vector<UnitPtr> &changed,
                                Family family, const char *what) {
  wholes = std::make_shared<std::vector<UnitPtr>>(changed);
  size_t before = solutions.size();
  greedyStarts(changed);
  for (size_t i = before; i < solutions.size(); ++i) {
    if (solutions[i].family != Family::Grid)
      solutions[i].family = family;
    solutions[i].what += what;
  }
}

/// Adds solutions with small hot tables replicated, if that may help.
void InitialSolver::findReplicaStarts(const std::vector<UnitPtr> &units) {
  std::vector<UnitPtr> replicated = withReplicas(context, units);
  if (replicated != units)
    addStartsOf(replicated, Family::Replicas, ", with replicas");
}

/// Adds solutions with row-wise tables that save time.
void InitialSolver::findRowBlockStarts(const std::vector<UnitPtr> &units) {
  for (const std::vector<UnitPtr> &cut :
       rowBlockChoices(context, units, outcome.evaluations))
    addStartsOf(cut, Family::RowBlocks, ", with row-wise tables");
}

void InitialSolver::findAll(const std::vector<UnitPtr> &units) {
  replicateAll(units);
  findReplicaStarts(units);
  findRowBlockStarts(units);
  wholes = std::make_shared<std::vector<UnitPtr>>(units);
  greedyStarts(units);
  if (context.deadlinePassed() && !solutions.empty())
    return;
  for (Algorithm algorithm : {Algorithm::Dim, Algorithm::Size,
                              Algorithm::Lookup, Algorithm::SizeLookup}) {
    SearchOutcome baseline = placeGreedilyByKey(context, units, algorithm);
    if (baseline.state)
      keepSolution(*baseline.state,
                   "whole tables by " + std::string(toString(algorithm)),
                   Family::Whole);
  }
  size_t size = units.size() * static_cast<size_t>(context.deviceCount);
  if (size <= kMaxPublishedSize)
    keepOutcome(searchPublished(context, units), "the published search",
                Family::Published);
  if (size <= kMaxComparedSize) {
    keepOutcome(searchTorchRec(context, units), "the planner of TorchRec",
                Family::Compared);
    keepOutcome(searchDistributedEmbeddings(context, units), "thresholds",
                Family::Compared);
  }
  if (context.options.policy)
    keepOutcome(searchDreamShard(context, units), "the placement policy",
                Family::Whole);
  if (!solutions.empty())
    return;
  for (const CutRule &rule : cutRules(context)) {
    if (context.deadlinePassed() && !solutions.empty())
      return;
    std::vector<UnitPtr> pieces = cutBy(context, rule, units);
    for (auto [balance, what] :
         {std::pair(Balance::MemoryAndCompute, "by memory and compute, "),
          std::pair(Balance::Memory, "by memory alone, ")})
      if (auto state =
              placeByMemory(context, pieces, balance, outcome.blocking))
        keepSolution(*state, what + rule.str(), familyOf(rule));
  }
}

/// Makes the table that found no room row-wise, in the one form that the target
/// runs; false when there is no such table.
bool InitialSolver::turnIntoRowBlocks(std::vector<UnitPtr> &units) {
  if (context.problem.target == Target::Native || !outcome.blocking ||
      outcome.blocking->tables.size() != 1)
    return false;
  int table = outcome.blocking->tables.front();
  std::vector<std::vector<int>> groups = rowBlockGroups(context, table);
  if (groups.empty() || context.rulesOf(table).fixed)
    return false;
  std::vector<UnitPtr> rest;
  for (const UnitPtr &unit : units)
    if (unit->tables != std::vector<int>{table})
      rest.push_back(unit);
  std::vector<UnitPtr> blocks = rowBlocks(context, table, groups.front());
  rest.insert(rest.end(), blocks.begin(), blocks.end());
  units = std::move(rest);
  outcome.explanation.push_back(
      "table '" + context.table(table).name + "' is cut by rows over " +
      std::to_string(blocks.size()) +
      " devices: it fits in no other form that the target runs");
  outcome.blocking = nullptr;
  return true;
}

std::vector<InitialSolution> InitialSolver::run(std::vector<UnitPtr> &units) {
  do {
    findAll(units);
  } while (solutions.empty() && turnIntoRowBlocks(units));
  return std::move(solutions);
}

} // namespace

std::vector<InitialSolution>
neuroshard::findInitialSolutions(const SearchContext &context,
                                 std::vector<UnitPtr> &units,
                                 SearchOutcome &outcome) {
  return InitialSolver(context, outcome).run(units);
}
