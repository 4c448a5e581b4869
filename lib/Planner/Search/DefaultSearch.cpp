//===- DefaultSearch.cpp - Initial solutions, then local search -----------===//
///
/// \file
/// 1. Cut what is too large for a device, or too costly for its share of the
///    work, in several strengths.
/// 2. For each strength, place greedily over a grid of dimension caps and
///    without a cap; whole tables also by the baselines' keys.
///    Small problems also try the published search.
/// 3. If nothing fits, let memory decide and cut whatever finds no room.
/// 4. With snapshots, add the plans for their summary and for each alone.
/// 5. With relays, place the tables on groups of devices, then inside each.
/// 6. Improve the best few initial solutions by local search.
/// 7. Undo cuts that lower the cost by next to nothing, and cuts whose parts
///    lie on one device.
/// 8. With relays, see whether another initial solution, or a plan over groups
///    of devices, is cheaper.
//===----------------------------------------------------------------------===//

#include "DefaultSearch.h"

#include "ChooseRoutes.h"
#include "Cost/RelayLoads.h"
#include "Forms/EvenColumns.h"
#include "Groups/GridSearch.h"
#include "Groups/GroupSearch.h"
#include "InitialSolutions.h"
#include "LocalSearch/LocalSearch.h"
#include "Placement/Greedy.h"
#include "Replan/PlanUnits.h"
#include "SnapshotInitialSolutions.h"
#include "Units/SearchThreads.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>

using namespace neuroshard;

namespace {

/// Number of local searches in the first round, and in the last ones; number of
/// rounds.
constexpr size_t kChains = 8;
constexpr size_t kLastChains = 2;
constexpr uint64_t kRounds = 3;
/// Devices times states whose exact cost is asked for in the last steps.
constexpr int64_t kExactVisits = 100'000;
/// Initial solutions that cost more than this times the cheapest are not used.
constexpr double kHopeful = 1.3;
/// Initial solutions that are looked at with routes: this number over tables x
/// devices, at least the first and at most the second.
constexpr double kRoutedWork = 2e5;
constexpr double kFewRouted = 4, kManyRouted = 24;
/// A plan made over groups of devices must lower the cost by this share, since
/// it has more shards.
constexpr double kGroupsWorth = 0.005;
/// With a budget, the share of it for each search over or inside groups is one
/// part of so many; below so many edits there are none.
constexpr int64_t kGroupSearches = 8;
constexpr int64_t kFewestGroupSteps = 5000;
/// Many tables are balanced over and inside groups with a part of the edits: a
/// quarter of them gave as good plans in two thirds of the time.
constexpr size_t kManyTables = 256;
constexpr int64_t kFewerStepsOfMany = 4;
/// Of the memory of a group, where tables that are placed on all of it do not
/// fit on its devices one by one.
constexpr double kLessOfAGroup = 0.85;
/// A cut must lower the cost by this share in the end; undoing cuts raises it
/// by no more than this share in all.
constexpr double kCutWorth = 1e-4;
/// Pieces of a table on one device repeat its ids or results and save nothing.
/// Only a fitted model can find them cheaper; a gain below this share of the
/// cost is noise, since two measurements of the same shards differ by more.
constexpr double kFittedNoise = 0.01;

/// Progress at the end of each phase, as a share of the whole search.
constexpr double kStartsEnd = 0.1;
constexpr double kGroupsShare = 0.1;
constexpr double kPeriodsEnd = 0.5;
constexpr double kAnnealEnd = 0.9;
constexpr double kDescentEnd = 0.98;
constexpr double kJoinEnd = 0.99;

/// One of several local searches.
struct Chain {
  Board board;
  const InitialSolution *start = nullptr;
  /// Description of the initial solution.
  int pieces = 0;
  double costMs = kInfiniteMs;
  int64_t evaluations = 0;
  /// Whether the best steps ended at their budget.
  bool usedUp = false;
};

class DefaultSearch {
public:
  explicit DefaultSearch(const SearchContext &context) : context(context) {}

  SearchOutcome run(std::vector<UnitPtr> units);

private:
  int64_t stepBudget(const std::vector<UnitPtr> &units) const;
  std::vector<const InitialSolution *> chooseStarts() const;
  void anneal(std::vector<Chain> &chains, int64_t steps, uint64_t round);
  void improveStarts(const std::vector<UnitPtr> &units);
  const InitialSolution &cheapestStart() const;
  const InitialSolution *cheapestValidStart() const;
  double simpleLimitMs(double costMs) const;
  void keepResult(const Chain &best);
  std::string whyStopped(const Chain &best, int64_t budget,
                         int64_t evaluations) const;
  void joinPiecesOnDevices(const std::vector<UnitPtr> &units);
  void preferRoutedStart();
  void findPlansOfGroups(const std::vector<UnitPtr> &units);
  void keepPlanOfGroups(const ShardingPlan &plan,
                        const std::vector<UnitPtr> &units);
  /// Why a plan over groups that is cheaper than this one is not taken.
  std::string whyNotGroups(double costMs) const;
  void preferPlanOfGroups();

  const SearchContext &context;
  SearchOutcome outcome;
  std::vector<InitialSolution> solutions;
  /// The cheapest one made over groups of devices, and its cost with routes.
  std::optional<SearchState> planOfGroups;
  double planOfGroupsMs = kInfiniteMs;
  /// Progress before local search.
  double shareDone = 0;
};

/// Number of random edits of all local searches.
int64_t DefaultSearch::stepBudget(const std::vector<UnitPtr> &units) const {
  int64_t budget = context.options.evaluationBudget;
  if (budget > 0)
    return relayGroupSize(context.problem) > 0 &&
                   budget / kGroupSearches >= kFewestGroupSteps
               ? budget / 2
               : budget;
  return annealSteps(context, units.size());
}

/// The best solutions of each family in turn, since local search seldom finds
/// what a family lacks (cuts by rows, say). One solution may start several
/// searches.
std::vector<const InitialSolution *> DefaultSearch::chooseStarts() const {
  // After the deadline there is no time to improve several.
  if (context.deadlinePassed())
    return {&cheapestStart()};
  double best = cheapestStart().costMs;
  std::array<std::vector<const InitialSolution *>, kFamilies> families;
  for (const InitialSolution &start : solutions)
    if (start.costMs <= kHopeful * best)
      families[static_cast<size_t>(start.family)].push_back(&start);
  for (std::vector<const InitialSolution *> &family : families)
    std::stable_sort(family.begin(), family.end(),
                     [](const InitialSolution *a, const InitialSolution *b) {
                       return a->costMs < b->costMs;
                     });
  std::vector<const InitialSolution *> chosen;
  for (size_t rank = 0; chosen.size() < kChains; ++rank)
    for (const std::vector<const InitialSolution *> &family : families)
      if (!family.empty() && chosen.size() < kChains)
        chosen.push_back(family[rank % family.size()]);
  return chosen;
}

/// Continues each chain for so many edits.
void DefaultSearch::anneal(std::vector<Chain> &chains, int64_t steps,
                           uint64_t round) {
  double part = (kAnnealEnd - shareDone) / kRounds;
  double begin = shareDone + part * static_cast<double>(round);
  context.beginPhase("local search", begin, begin + part);
  std::atomic<int> stages = 0;
  double allStages = static_cast<double>(kAnnealStages * chains.size());
  context.pool().forEach(chains.size(), [&](size_t i) {
    Chain &chain = chains[i];
    AnnealSettings settings = annealSettings(steps, chain.pieces, round, i);
    settings.seed = (context.options.seed * kRounds + round) * kChains + i;
    settings.stageDone = [&](double costMs) {
      context.noteCost(costMs);
      context.noteShare(++stages / allStages);
    };
    chain.costMs = neuroshard::anneal(chain.board, settings, chain.evaluations);
  });
  std::stable_sort(
      chains.begin(), chains.end(),
      [](const Chain &a, const Chain &b) { return a.costMs < b.costMs; });
}

/// Runs several searches from different solutions; the better half goes on with
/// more edits each, until few are left.
void DefaultSearch::improveStarts(const std::vector<UnitPtr> &units) {
  int64_t budget = stepBudget(units), before = outcome.evaluations;
  std::vector<Chain> chains;
  for (const InitialSolution *start : chooseStarts()) {
    if (!chains.empty() && context.deadlinePassed())
      break;
    Board board(context, *start->wholes, start->state);
    int pieces = board.pieceCount();
    chains.push_back({std::move(board), start, pieces});
  }
  for (uint64_t round = 0; round < kRounds; ++round) {
    anneal(chains,
           budget * 9 / 10 / kRounds / static_cast<int64_t>(chains.size()),
           round);
    outcome.tried.push_back("from '" + chains.front().start->what +
                            "': " + formatMs(chains.front().start->costMs) +
                            ", after round " + std::to_string(round + 1) +
                            " of local search " +
                            formatMs(chains.front().costMs));
    while (chains.size() > kLastChains &&
           chains.size() > kChains >> (round + 1)) {
      outcome.evaluations += chains.back().evaluations;
      chains.pop_back();
    }
  }
  context.beginPhase("best steps", kAnnealEnd, kDescentEnd);
  context.pool().forEach(chains.size(), [&](size_t i) {
    Chain &chain = chains[i];
    int64_t share = budget / 10 / static_cast<int64_t>(chains.size());
    int64_t before = chain.evaluations;
    descend(chain.board, share, chain.evaluations);
    chain.usedUp = chain.evaluations - before >= share;
    int64_t visits = std::min(share, kExactVisits / context.deviceCount);
    before = chain.evaluations;
    chain.costMs = descendExactly(chain.board, visits, chain.evaluations);
    chain.usedUp |= chain.evaluations - before >= visits;
  });
  context.beginPhase("joining pieces", kDescentEnd, kJoinEnd);
  Chain *best = &chains.front();
  for (Chain &chain : chains) {
    outcome.evaluations += chain.evaluations;
    context.noteCost(chain.costMs);
    if (chain.costMs < best->costMs)
      best = &chain;
  }
  int64_t edits = outcome.evaluations - before;
  best->costMs =
      joinPieces(best->board, simpleLimitMs(best->costMs), outcome.evaluations);
  keepResult(*best);
  outcome.stopReason = whyStopped(*best, budget, edits);
}

/// Why local search ended, which made `evaluations` edits.
std::string DefaultSearch::whyStopped(const Chain &best, int64_t budget,
                                      int64_t evaluations) const {
  if (context.deadlinePassed())
    return context.whyStopped();
  if (best.pieces == 0)
    return "no piece of a table may be moved or cut, so initial solutions are "
           "all";
  return "budget of " + std::to_string(budget) + " edits drawn, of which " +
         std::to_string(evaluations) + " could be made, " +
         (best.usedUp ? "and used up by the best steps"
                      : "then no step improves the plan");
}

const InitialSolution &DefaultSearch::cheapestStart() const {
  return *std::min_element(
      solutions.begin(), solutions.end(),
      [](const InitialSolution &a, const InitialSolution &b) {
        return a.costMs < b.costMs;
      });
}

/// Largest cost of a plan with fewer cuts: hardly more than now, and no more
/// than the cheapest initial solution.
double DefaultSearch::simpleLimitMs(double costMs) const {
  return std::max(costMs,
                  std::min(costMs * (1 + kCutWorth), cheapestStart().costMs));
}

/// The cheapest initial solution that follows every rule.
const InitialSolution *DefaultSearch::cheapestValidStart() const {
  const InitialSolution *best = nullptr;
  for (const InitialSolution &start : solutions)
    if ((!best || start.costMs < best->costMs) &&
        verify(start.state.plan(), context.problem).empty())
      best = &start;
  return best;
}

void DefaultSearch::keepResult(const Chain &best) {
  outcome.state.emplace(withEvenColumns(best.board.state()));
  // Sums are rounded in another order here; never end above the solutions.
  if (outcome.state->costMs() > cheapestStart().costMs)
    outcome.state.emplace(cheapestStart().state);
  // Edits do not check every rule, around hand-written shards, say.
  if (!verify(outcome.state->plan(), context.problem).empty()) {
    outcome.brokeRule = true;
    if (const InitialSolution *valid = cheapestValidStart())
      outcome.state.emplace(valid->state);
  }
  outcome.tried.push_back("then descent: " + formatMs(outcome.state->costMs()));
  outcome.explanation.push_back("start: " + best.start->what);
}

void DefaultSearch::joinPiecesOnDevices(const std::vector<UnitPtr> &units) {
  if (context.model.monotone())
    return;
  Board board(context, units, *outcome.state);
  int pieces = board.pieceCount();
  neuroshard::joinPiecesOnDevices(
      board, outcome.state->costMs() * (1 + kFittedNoise), outcome.evaluations);
  if (board.pieceCount() == pieces)
    return;
  SearchState joined = withEvenColumns(board.state());
  if (!joined.withinMemory() || !verify(joined.plan(), context.problem).empty())
    return;
  outcome.tried.push_back("then pieces on one device joined: " +
                          formatMs(joined.costMs()));
  outcome.state.emplace(std::move(joined));
}

/// Searches count results as sent directly; by way of relays one of the initial
/// solutions may be cheaper than what came of another.
void DefaultSearch::preferRoutedStart() {
  if (relayGroupSize(context.problem) == 0 || !outcome.state)
    return;
  std::vector<const InitialSolution *> starts;
  for (const InitialSolution &start : solutions)
    starts.push_back(&start);
  std::ranges::stable_sort(starts, {}, &InitialSolution::costMs);
  double size =
      static_cast<double>(context.problem.tables.size()) * context.deviceCount;
  starts.resize(std::min(
      starts.size(), static_cast<size_t>(std::clamp(kRoutedWork / size,
                                                    kFewRouted, kManyRouted))));
  double best = costWithRoutesMs(context, outcome.state->plan());
  const InitialSolution *better = nullptr;
  for (const InitialSolution *start : starts) {
    if (context.deadlinePassed())
      break;
    ShardingPlan plan = start->state.plan();
    if (double cost = costWithRoutesMs(context, plan);
        cost < best && verify(plan, context.problem).empty()) {
      best = cost;
      better = start;
    }
  }
  if (!better)
    return;
  outcome.state.emplace(better->state);
  outcome.tried.push_back("by way of relays, '" + better->what +
                          "' is cheaper: " + formatMs(best));
}

/// Places tables on groups first, for plans that go by way of relays. Before
/// local search, which ends at the deadline.
void DefaultSearch::findPlansOfGroups(const std::vector<UnitPtr> &units) {
  int64_t budget = context.options.evaluationBudget;
  int64_t steps = budget > 0 ? budget / kGroupSearches : stepBudget(units);
  if (budget == 0 && units.size() > kManyTables)
    steps /= kFewerStepsOfMany;
  if (relayGroupSize(context.problem) == 0 || steps < kFewestGroupSteps)
    return;
  const GroupSearchSettings tries[] = {{RowWidths::Equal, 1, steps},
                                       {context.widths, 1, steps},
                                       {context.widths, kLessOfAGroup, steps}};
  double part = kGroupsShare / static_cast<double>(std::size(tries));
  for (const GroupSearchSettings &settings : tries) {
    bool isRepeated = &settings != tries && settings.memoryShare == 1 &&
                      settings.widths == tries[0].widths;
    context.beginPhase("over groups of devices", shareDone, shareDone + part);
    shareDone += part;
    // Plans that fit need no other try with less memory.
    if (context.deadlinePassed() || isRepeated ||
        (planOfGroups && settings.memoryShare < 1))
      continue;
    for (const ShardingPlan &plan :
         searchByGroups(context, searchDefault, settings, outcome.evaluations))
      keepPlanOfGroups(plan, units);
  }
  if (planOfGroups)
    if (std::optional<ShardingPlan> grids = searchGrids(
            context, planOfGroups->plan(), planOfGroupsMs, outcome.evaluations))
      keepPlanOfGroups(*grids, units);
}

void DefaultSearch::keepPlanOfGroups(const ShardingPlan &plan,
                                     const std::vector<UnitPtr> &units) {
  PlanUnits reader(context, plan);
  if (!reader.read(units))
    return;
  SearchState state = reader.state();
  ShardingPlan placed = state.plan();
  if (!state.withinMemory() || !verify(placed, context.problem).empty())
    return;
  double cost = costWithRoutesMs(context, placed);
  context.noteCost(cost);
  outcome.tried.push_back("over groups of devices, then inside each: " +
                          formatMs(cost));
  if (planOfGroups && cost >= planOfGroupsMs)
    return;
  planOfGroupsMs = cost;
  planOfGroups.emplace(std::move(state));
}

std::string DefaultSearch::whyNotGroups(double costMs) const {
  char note[160];
  std::snprintf(note, sizeof note,
                "not over groups of devices: %s, which is shorter by less than "
                "%.2g %% than %s, and its shards are not worth that",
                formatMs(planOfGroupsMs).c_str(), 100 * kGroupsWorth,
                formatMs(costMs).c_str());
  return note;
}

void DefaultSearch::preferPlanOfGroups() {
  if (!planOfGroups)
    return;
  bool isValid =
      outcome.state && verify(outcome.state->plan(), context.problem).empty();
  if (isValid) {
    double cost = costWithRoutesMs(context, outcome.state->plan());
    if (planOfGroupsMs >= cost * (1 - kGroupsWorth)) {
      if (planOfGroupsMs < cost)
        outcome.explanation.push_back(whyNotGroups(cost));
      return;
    }
  }
  outcome.state.emplace(std::move(*planOfGroups));
  outcome.brokeRule = false;
  outcome.explanation = {"start: over groups of devices, then inside each"};
}

SearchOutcome DefaultSearch::run(std::vector<UnitPtr> units) {
  context.beginPhase("initial solutions", 0, kStartsEnd);
  solutions = findInitialSolutions(context, units, outcome);
  if (solutions.empty())
    return std::move(outcome);
  shareDone = kStartsEnd;
  if (!context.periods.empty()) {
    context.beginPhase("snapshots one by one", kStartsEnd, kPeriodsEnd);
    addSnapshotSolutions(context, units, stepBudget(units), searchDefault,
                         solutions, outcome);
    shareDone = kPeriodsEnd;
  }
  findPlansOfGroups(units);
  improveStarts(units);
  joinPiecesOnDevices(units);
  preferRoutedStart();
  preferPlanOfGroups();
  return std::move(outcome);
}

} // namespace

SearchOutcome neuroshard::searchDefault(const SearchContext &context,
                                        const std::vector<UnitPtr> &units) {
  return DefaultSearch(context).run(units);
}
