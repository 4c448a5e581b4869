//===- DefaultSearch.cpp - Splits, greedy over caps, local search ---------===//
///
/// \file
/// 1. Cut what is too large for a device, or too costly for its share of the
///    work, in several strengths.
/// 2. For each strength, place greedily over a grid of dimension caps and
///    without a cap; whole tables also by the baselines' keys.
///    Small problems also try the published search.
/// 3. If nothing fits, let memory decide and cut whatever finds no room.
/// 4. Improve the best few by local search.
//===----------------------------------------------------------------------===//

#include "Algorithms.h"
#include "Anneal.h"
#include "Greedy.h"
#include "Placement.h"
#include "Replicas.h"
#include "ThreadPool.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

/// A piece may need this share of the roomiest device.
constexpr double kRoomShare = 0.9;
/// A piece may cost this share of the mean device's compute.
constexpr double kCostShares[] = {1.0, 0.7, 0.5, 0.35, 0.25};
/// Into how many parts one cut may go.
constexpr double kMaxParts = 65536;
/// Local searches in the first round, and from the last but one on; rounds; how
/// much worse a search lets the plan become at first, and in later rounds.
constexpr size_t kChains = 8;
constexpr size_t kLastChains = 2;
constexpr uint64_t kRounds = 3;
constexpr double kHeats[] = {0.003, 0.01, 0.03, 0.1};
/// Starts that cost more than this times the cheapest are left alone.
constexpr double kHopeful = 1.3;
constexpr double kLateHeat = 0.004;
/// Random steps by size (pieces x devices): with its square up to a size,
/// hardly more from there on, and with its root for the largest.
constexpr double kStepsPerSquare = 3.4;
constexpr double kMiddleSize = 570;
constexpr double kMiddlePower = 0.15;
constexpr double kStepsPerRoot = 2.1e4;
constexpr double kMinSteps = 1.2e5;
constexpr double kMaxSteps = 2e7;
/// Closed forms of a few sums allow more steps, models without sums fewer.
constexpr int kSmallEmbedding = 16;
constexpr double kFastModel = 2;
constexpr double kSlowModel = 20;
/// The published search is one of the starts when units x devices are few.
constexpr size_t kMaxPublishedSize = 1024;
/// One way to cut before placing: what may cost more than the share is cut.
struct CutRule {
  double costShare = kNoCap;
  Cut direction = Cut::Columns;

  std::string str() const {
    if (costShare == kNoCap)
      return "cuts for memory only";
    char text[80];
    std::snprintf(text, sizeof text, "%s up to %g of a mean device",
                  direction == Cut::Columns ? "column pieces" : "row pieces",
                  costShare);
    return text;
  }
};

std::vector<CutRule> cutRules(const SearchContext &context) {
  std::vector<CutRule> rules = {{}};
  for (double share : kCostShares) {
    rules.push_back({share, Cut::Columns});
    if (context.problem.target == Target::Native)
      rules.push_back({share, Cut::Rows});
  }
  return rules;
}

/// How a start came about; starts of one family resemble each other.
enum class Family { Columns, Rows, Published, Whole, Replicas };
constexpr size_t kFamilies = 5;

struct Start {
  SearchState state;
  double costMs;
  std::string what;
  Family family;
  /// What it was cut out of.
  std::shared_ptr<const std::vector<UnitPtr>> wholes;
};

/// One of several local searches.
struct Chain {
  Board board;
  const Start *start = nullptr;
  double costMs = kNoCap;
  int64_t evaluations = 0;
};

Family familyOf(const CutRule &rule) {
  return rule.costShare == kNoCap         ? Family::Whole
         : rule.direction == Cut::Columns ? Family::Columns
                                          : Family::Rows;
}

class DefaultSearch {
public:
  explicit DefaultSearch(const SearchContext &context) : context(context) {}

  Outcome run(std::vector<UnitPtr> units);

private:
  void findReplicaStarts(const std::vector<UnitPtr> &units);
  void findStarts(const std::vector<UnitPtr> &units);
  void greedyStarts(const std::vector<UnitPtr> &units, const CutRule &rule);
  void keepStart(const SearchState &state, const std::string &what,
                 Family family);
  std::vector<UnitPtr> cut(const std::vector<UnitPtr> &units,
                           CutRule rule) const;
  void cutUnit(const UnitPtr &unit, int64_t room, double costMs, Cut direction,
               std::vector<UnitPtr> &out) const;
  int64_t largestRoom() const;
  bool turnIntoRowBlocks(std::vector<UnitPtr> &units);
  int64_t stepBudget(const std::vector<UnitPtr> &units) const;
  std::vector<const Start *> chooseStarts() const;
  void anneal(std::vector<Chain> &chains, int64_t steps, uint64_t round);
  void improveStarts(const std::vector<UnitPtr> &units);
  void keepResult(const Chain &best, int64_t budget);

  const SearchContext &context;
  Outcome outcome;
  std::vector<Start> starts;
  /// The units that starts are being cut out of.
  std::shared_ptr<const std::vector<UnitPtr>> wholes;
};

int64_t DefaultSearch::largestRoom() const {
  int64_t room = 0;
  for (int device = 0; device < context.deviceCount; ++device)
    room = std::max(room, context.memoryOf(device) -
                              context.baseOf(device).peakBytes());
  return room;
}

/// Too costly: in the given direction, if possible. Too large: by columns, or
/// by rows where that takes clearly less memory. Into as many parts as it
/// takes; parts still too large again.
void DefaultSearch::cutUnit(const UnitPtr &unit, int64_t room, double costMs,
                            Cut direction, std::vector<UnitPtr> &out) const {
  double memoryRatio =
      static_cast<double>(unit->peakBytes()) / static_cast<double>(room);
  double costRatio = unit->aloneMs() / costMs;
  if (std::max(memoryRatio, costRatio) <= 1)
    return out.push_back(unit);
  auto partsFor = [](double ratio) {
    return std::max(2, static_cast<int>(std::min(std::ceil(ratio), kMaxParts)));
  };
  auto byColumns = [&](double ratio) {
    std::optional<std::vector<UnitPtr>> pieces;
    for (int parts = partsFor(ratio); parts >= 2 && !pieces; parts /= 2)
      pieces = splitColumns(context, *unit, parts);
    return pieces;
  };
  double larger = std::max(memoryRatio, costRatio);
  std::optional<std::vector<UnitPtr>> pieces;
  if (costRatio > 1)
    pieces = direction == Cut::Columns
                 ? byColumns(larger)
                 : splitRows(context, *unit, partsFor(larger));
  if (!pieces && memoryRatio > 1)
    pieces = betterCut(byColumns(memoryRatio),
                       splitRows(context, *unit, partsFor(memoryRatio)));
  if (!pieces)
    return out.push_back(unit);
  // Costs do not fall in proportion, so cutting for them goes on but once.
  for (const UnitPtr &piece : *pieces)
    cutUnit(piece, room, kNoCap, direction, out);
}

std::vector<UnitPtr> DefaultSearch::cut(const std::vector<UnitPtr> &units,
                                        CutRule rule) const {
  double total = 0;
  for (const UnitPtr &unit : units)
    total += unit->aloneMs();
  int64_t room = std::max<int64_t>(
      1, static_cast<int64_t>(kRoomShare * static_cast<double>(largestRoom())));
  double costMs = rule.costShare * total / context.deviceCount;
  std::vector<UnitPtr> pieces;
  for (const UnitPtr &unit : units)
    cutUnit(unit, room, costMs > 0 ? costMs : kNoCap, rule.direction, pieces);
  return pieces;
}

void DefaultSearch::keepStart(const SearchState &state, const std::string &what,
                              Family family) {
  ++outcome.evaluations;
  if (!state.withinMemory())
    return;
  double cost = state.costMs();
  outcome.tried.push_back(what + ": " + formatMs(cost));
  starts.push_back({state, cost, what, family, wholes});
}

/// The best placement of these pieces over the caps.
void DefaultSearch::greedyStarts(const std::vector<UnitPtr> &units,
                                 const CutRule &rule) {
  const PublishedSettings &grid = context.options.published;
  std::vector<double> caps = gridCaps(grid);
  caps.push_back(kNoCap);
  GreedyJob job;
  job.units = units;
  job.order = orderByCost(context, units);
  GreedyJob *jobs[] = {&job};
  GreedyPlacer(context, caps).run(jobs);
  outcome.evaluations += job.evaluations;
  if (job.costMs < kNoCap)
    keepStart(stateOf(context, job), "greedy, " + rule.str(), familyOf(rule));
  else
    outcome.tried.push_back("greedy, " + rule.str() + ": no room");
}

/// Starts with small hot tables on every device, if that may help.
void DefaultSearch::findReplicaStarts(const std::vector<UnitPtr> &units) {
  std::vector<UnitPtr> replicated = withReplicas(context, units);
  if (replicated == units)
    return;
  wholes = std::make_shared<std::vector<UnitPtr>>(replicated);
  size_t before = starts.size();
  for (const CutRule &rule : cutRules(context)) {
    if (context.deadlinePassed() && !starts.empty())
      break;
    greedyStarts(cut(replicated, rule), rule);
  }
  for (size_t i = before; i < starts.size(); ++i) {
    starts[i].family = Family::Replicas;
    starts[i].what += ", with replicas";
  }
}

void DefaultSearch::findStarts(const std::vector<UnitPtr> &units) {
  findReplicaStarts(units);
  wholes = std::make_shared<std::vector<UnitPtr>>(units);
  std::vector<CutRule> rules = cutRules(context);
  for (const CutRule &rule : rules) {
    if (context.deadlinePassed() && !starts.empty())
      return;
    greedyStarts(cut(units, rule), rule);
  }
  for (Algorithm algorithm : {Algorithm::Dim, Algorithm::Size,
                              Algorithm::Lookup, Algorithm::SizeLookup}) {
    Outcome baseline = searchBaseline(context, units, algorithm);
    if (baseline.state)
      keepStart(*baseline.state,
                "whole tables by " + std::string(toString(algorithm)),
                Family::Whole);
  }
  if (units.size() * static_cast<size_t>(context.deviceCount) <=
      kMaxPublishedSize) {
    Outcome published = searchPublished(context, units);
    if (published.state)
      keepStart(*published.state, "the published search", Family::Published);
  }
  if (!starts.empty())
    return;
  for (const CutRule &rule : rules) {
    if (context.deadlinePassed() && !starts.empty())
      return;
    std::vector<UnitPtr> pieces = cut(units, rule);
    for (auto [balance, what] :
         {std::pair(Balance::MemoryAndCompute, "by memory and compute, "),
          std::pair(Balance::Memory, "by memory alone, ")})
      if (auto state =
              placeByMemory(context, pieces, balance, outcome.blocking))
        keepStart(*state, what + rule.str(), familyOf(rule));
  }
}

/// A table that found no room becomes row-wise, in the one form the target
/// runs; false when there is no such table.
bool DefaultSearch::turnIntoRowBlocks(std::vector<UnitPtr> &units) {
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
      " devices: it found no room in any other way the target runs");
  outcome.blocking = nullptr;
  return true;
}

/// How many random steps in all.
int64_t DefaultSearch::stepBudget(const std::vector<UnitPtr> &units) const {
  if (context.options.evaluationBudget > 0)
    return context.options.evaluationBudget;
  double size = static_cast<double>(units.size()) * context.deviceCount;
  double small = std::min(size, kMiddleSize);
  double steps =
      kStepsPerSquare * small * small * std::pow(size / small, kMiddlePower);
  if (size > kMiddleSize)
    steps = std::max(steps, kStepsPerRoot * std::sqrt(size));
  const SumEmbedding *embedding = context.model.sumEmbedding();
  if (embedding && embedding->size() <= kSmallEmbedding)
    steps *= kFastModel;
  steps = std::clamp(steps, kMinSteps, kMaxSteps);
  // A model that looks at every shard each time is slow.
  return static_cast<int64_t>(embedding ? steps : steps / kSlowModel);
}

/// The best starts, of each family in turn: what one family lacks (cuts by
/// rows, say) small steps hardly find. A start may serve several searches.
std::vector<const Start *> DefaultSearch::chooseStarts() const {
  double best = kNoCap;
  for (const Start &start : starts)
    best = std::min(best, start.costMs);
  std::array<std::vector<const Start *>, kFamilies> families;
  for (const Start &start : starts)
    if (start.costMs <= kHopeful * best)
      families[static_cast<size_t>(start.family)].push_back(&start);
  for (std::vector<const Start *> &family : families)
    std::stable_sort(
        family.begin(), family.end(),
        [](const Start *a, const Start *b) { return a->costMs < b->costMs; });
  std::vector<const Start *> chosen;
  for (size_t rank = 0; chosen.size() < kChains; ++rank)
    for (const std::vector<const Start *> &family : families)
      if (!family.empty() && chosen.size() < kChains)
        chosen.push_back(family[rank % family.size()]);
  return chosen;
}

/// Continues the chains for so many steps each.
void DefaultSearch::anneal(std::vector<Chain> &chains, int64_t steps,
                           uint64_t round) {
  context.pool().forEach(chains.size(), [&](size_t i) {
    Chain &chain = chains[i];
    AnnealSettings settings;
    settings.seed = (context.options.seed * kRounds + round) * kChains + i;
    settings.steps = steps;
    settings.firstHeat = round ? kLateHeat : kHeats[i % std::size(kHeats)];
    chain.costMs = neuroshard::anneal(chain.board, settings, chain.evaluations);
  });
  std::stable_sort(
      chains.begin(), chains.end(),
      [](const Chain &a, const Chain &b) { return a.costMs < b.costMs; });
}

/// Several searches from different starts; the better half goes on with more
/// steps each, until few are left.
void DefaultSearch::improveStarts(const std::vector<UnitPtr> &units) {
  int64_t budget = stepBudget(units);
  std::vector<Chain> chains;
  for (const Start *start : chooseStarts())
    chains.push_back({Board(context, *start->wholes, start->state), start});
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
  context.pool().forEach(chains.size(), [&](size_t i) {
    Chain &chain = chains[i];
    chain.costMs =
        descend(chain.board, budget / 10 / static_cast<int64_t>(chains.size()),
                chain.evaluations);
  });
  Chain *best = &chains.front();
  for (Chain &chain : chains) {
    outcome.evaluations += chain.evaluations;
    if (chain.costMs < best->costMs)
      best = &chain;
  }
  keepResult(*best, budget);
}

void DefaultSearch::keepResult(const Chain &best, int64_t budget) {
  outcome.state.emplace(best.board.state());
  const Start *cheapest = &starts.front();
  for (const Start &start : starts)
    if (start.costMs < cheapest->costMs)
      cheapest = &start;
  // The starts' costs come from other sums; never end above them.
  if (outcome.state->costMs() > cheapest->costMs)
    outcome.state.emplace(cheapest->state);
  outcome.tried.push_back("then the best steps: " +
                          formatMs(outcome.state->costMs()));
  outcome.explanation.push_back("start: " + best.start->what);
  outcome.stopReason = context.deadlinePassed()
                           ? "deadline"
                           : "evaluation budget of " + std::to_string(budget) +
                                 " used up, then no step improves the plan";
}

Outcome DefaultSearch::run(std::vector<UnitPtr> units) {
  do {
    findStarts(units);
  } while (starts.empty() && turnIntoRowBlocks(units));
  if (!starts.empty())
    improveStarts(units);
  return std::move(outcome);
}

} // namespace

Outcome neuroshard::searchDefault(const SearchContext &context,
                                  const std::vector<UnitPtr> &units) {
  return DefaultSearch(context).run(units);
}
