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
/// 5. Take back cuts that bring next to nothing.
//===----------------------------------------------------------------------===//

#include "Algorithms.h"
#include "Anneal.h"
#include "ComputeBatch.h"
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
/// Or this share of a mean device's compute, ids and results.
constexpr double kTrafficShares[] = {1.5, 1.0, 0.7};
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
/// The heats are for boards of this many pieces. One of N pieces changes the
/// cost by about 1 / N, so more of them take less heat (to this power): in heat
/// that is small to the whole and large to a piece, tables only fall apart.
constexpr double kHeatPieces = 48;
constexpr double kHeatPower = 1.25;
/// What one more piece must bring on such a board, as a share of the cost.
constexpr double kPieceWorth = 1e-3;
/// Random steps by size (tables x devices): the larger of what grows with its
/// square, from a size on with its cube, up to a number, and with its root.
constexpr double kStepsPerSquare = 3.4;
constexpr double kCubeSize = 210;
constexpr double kMiddleSteps = 1.5e6;
constexpr double kStepsPerRoot = 2.1e4;
constexpr double kMinSteps = 1.2e5;
constexpr double kMaxSteps = 6e6;
/// Closed forms of a few sums allow more steps, models without sums fewer.
constexpr double kFastModel = 1.5;
constexpr double kSlowModel = 20;
/// A cut must lower the cost by this share in the end; all that are taken back
/// raise it by no more together.
constexpr double kCutWorth = 1e-4;
/// The published search is one of the starts when units x devices are few.
constexpr size_t kMaxPublishedSize = 1024;
/// Along which a rule cuts what costs too much: rows take ids only for
/// themselves, columns results; whichever leaves less to exchange is one.
enum class Way { Columns, Rows, LessTraffic };

/// One way to cut before placing: what may cost more than the share is cut.
struct CutRule {
  double costShare = kNoCap;
  Way way = Way::Columns;

  std::string str() const {
    if (costShare == kNoCap)
      return "cuts for memory only";
    char text[80];
    std::snprintf(text, sizeof text, "%s up to %g of a mean device",
                  way == Way::Columns ? "column pieces"
                  : way == Way::Rows  ? "row pieces"
                                      : "pieces of little traffic",
                  costShare);
    return text;
  }
};

std::vector<CutRule> cutRules(const SearchContext &context) {
  std::vector<CutRule> rules = {{}};
  bool native = context.problem.target == Target::Native;
  bool step = context.options.objective.kind == ObjectiveKind::Step;
  for (double share : kCostShares) {
    rules.push_back({share, Way::Columns});
    if (native)
      rules.push_back({share, Way::Rows});
  }
  // Ids cost nothing under the other objective.
  for (double share : kTrafficShares)
    if (native && step)
      rules.push_back({share, Way::LessTraffic});
  return rules;
}

/// What a piece may come to before it is cut.
struct CutLimits {
  int64_t bytes = 0;
  double computeMs = kNoCap;
  double inputBytes = kNoCap;
  double resultBytes = kNoCap;
};

double resultBytesOf(const Unit &unit) {
  return unit.load.forwardBytes + unit.load.backwardBytes;
}

/// How many pieces a unit's cost asks for under these limits.
double costRatioOf(const Unit &unit, const CutLimits &limits) {
  return std::max({unit.aloneMs() / limits.computeMs,
                   unit.load.inputBytes / limits.inputBytes,
                   resultBytesOf(unit) / limits.resultBytes});
}

bool cutsRows(const Unit &unit, Way way) {
  return way == Way::Rows || (way == Way::LessTraffic &&
                              unit.load.inputBytes > resultBytesOf(unit));
}

/// How a start came about; starts of one family resemble each other.
enum class Family { Columns, Rows, LessTraffic, Published, Whole, Replicas };
constexpr size_t kFamilies = 6;

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
  /// Of the start.
  int pieces = 0;
  double costMs = kNoCap;
  int64_t evaluations = 0;
};

Family familyOf(const CutRule &rule) {
  return rule.costShare == kNoCap   ? Family::Whole
         : rule.way == Way::Columns ? Family::Columns
         : rule.way == Way::Rows    ? Family::Rows
                                    : Family::LessTraffic;
}

class DefaultSearch {
public:
  explicit DefaultSearch(const SearchContext &context) : context(context) {}

  Outcome run(std::vector<UnitPtr> units);

private:
  void findReplicaStarts(const std::vector<UnitPtr> &units);
  void findStarts(const std::vector<UnitPtr> &units);
  void greedyStarts(const std::vector<UnitPtr> &units);
  void keepStart(const SearchState &state, const std::string &what,
                 Family family);
  std::vector<UnitPtr> cut(const std::vector<UnitPtr> &units,
                           CutRule rule) const;
  void cutUnit(const UnitPtr &unit, const CutLimits &limits, Way way,
               std::vector<UnitPtr> &out) const;
  int64_t largestRoom() const;
  bool turnIntoRowBlocks(std::vector<UnitPtr> &units);
  int64_t stepBudget(const std::vector<UnitPtr> &units) const;
  std::vector<const Start *> chooseStarts() const;
  void anneal(std::vector<Chain> &chains, int64_t steps, uint64_t round);
  void improveStarts(const std::vector<UnitPtr> &units);
  const Start &cheapestStart() const;
  double simpleLimitMs(double costMs) const;
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
void DefaultSearch::cutUnit(const UnitPtr &unit, const CutLimits &limits,
                            Way way, std::vector<UnitPtr> &out) const {
  double memoryRatio = static_cast<double>(unit->peakBytes()) /
                       static_cast<double>(limits.bytes);
  double costRatio = costRatioOf(*unit, limits);
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
    pieces = cutsRows(*unit, way) ? splitRows(context, *unit, partsFor(larger))
                                  : byColumns(larger);
  if (!pieces && memoryRatio > 1)
    pieces = betterCut(byColumns(memoryRatio),
                       splitRows(context, *unit, partsFor(memoryRatio)));
  if (!pieces)
    return out.push_back(unit);
  // Costs do not fall in proportion, so cutting for them goes on but once.
  for (const UnitPtr &piece : *pieces)
    cutUnit(piece, {limits.bytes}, way, out);
}

std::vector<UnitPtr> DefaultSearch::cut(const std::vector<UnitPtr> &units,
                                        CutRule rule) const {
  CutLimits totals = {0, 0, 0, 0};
  for (const UnitPtr &unit : units) {
    totals.computeMs += unit->aloneMs();
    totals.inputBytes += unit->load.inputBytes;
    totals.resultBytes += resultBytesOf(*unit);
  }
  auto limit = [&](double total, bool counts) {
    double share = rule.costShare * total / context.deviceCount;
    return counts && share > 0 ? share : kNoCap;
  };
  bool traffic = rule.way == Way::LessTraffic;
  CutLimits limits;
  limits.bytes = std::max<int64_t>(
      1, static_cast<int64_t>(kRoomShare * static_cast<double>(largestRoom())));
  limits.computeMs = limit(totals.computeMs, true);
  limits.inputBytes = limit(totals.inputBytes, traffic);
  limits.resultBytes = limit(totals.resultBytes, traffic);
  std::vector<UnitPtr> pieces;
  for (const UnitPtr &unit : units)
    cutUnit(unit, limits, rule.way, pieces);
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

/// For each rule the best placement of its pieces over the caps.
void DefaultSearch::greedyStarts(const std::vector<UnitPtr> &units) {
  std::vector<double> caps = gridCaps(context.options.published);
  caps.push_back(kNoCap);
  GreedyPlacer placer(context, caps);
  std::vector<CutRule> rules = cutRules(context);
  std::vector<GreedyJob> jobs(rules.size());
  bool needsOne = starts.empty();
  context.pool().forEach(rules.size(), [&](size_t i) {
    if (context.deadlinePassed() && !(needsOne && i == 0))
      return;
    jobs[i].units = cut(units, rules[i]);
    jobs[i].order = orderByCost(context, jobs[i].units);
    GreedyJob *one[] = {&jobs[i]};
    placer.run(one);
  });
  for (size_t i = 0; i < rules.size(); ++i) {
    outcome.evaluations += jobs[i].evaluations;
    std::string what = "greedy, " + rules[i].str();
    if (jobs[i].costMs < kNoCap)
      keepStart(stateOf(context, jobs[i]), what, familyOf(rules[i]));
    else if (jobs[i].evaluations > 0)
      outcome.tried.push_back(what.append(": no room"));
  }
}

/// Starts with small hot tables on every device, if that may help.
void DefaultSearch::findReplicaStarts(const std::vector<UnitPtr> &units) {
  std::vector<UnitPtr> replicated = withReplicas(context, units);
  if (replicated == units)
    return;
  wholes = std::make_shared<std::vector<UnitPtr>>(replicated);
  size_t before = starts.size();
  greedyStarts(replicated);
  for (size_t i = before; i < starts.size(); ++i) {
    starts[i].family = Family::Replicas;
    starts[i].what += ", with replicas";
  }
}

void DefaultSearch::findStarts(const std::vector<UnitPtr> &units) {
  findReplicaStarts(units);
  wholes = std::make_shared<std::vector<UnitPtr>>(units);
  greedyStarts(units);
  if (context.deadlinePassed() && !starts.empty())
    return;
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
  for (const CutRule &rule : cutRules(context)) {
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
  double steps =
      kStepsPerSquare * size * size * std::max(1.0, size / kCubeSize);
  steps =
      std::max(std::min(steps, kMiddleSteps), kStepsPerRoot * std::sqrt(size));
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
    double share = std::min(1.0, kHeatPieces / std::max(1, chain.pieces));
    settings.firstHeat = (round ? kLateHeat : kHeats[i % std::size(kHeats)]) *
                         std::pow(share, kHeatPower);
    settings.lastHeat *= share;
    settings.pieceWorth = kPieceWorth * share;
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
  for (const Start *start : chooseStarts()) {
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
  best->costMs =
      simplify(best->board, simpleLimitMs(best->costMs), outcome.evaluations);
  keepResult(*best, budget);
}

const Start &DefaultSearch::cheapestStart() const {
  return *std::min_element(
      starts.begin(), starts.end(),
      [](const Start &a, const Start &b) { return a.costMs < b.costMs; });
}

/// What a simpler plan may cost: hardly more, and no more than a start.
double DefaultSearch::simpleLimitMs(double costMs) const {
  return std::max(costMs,
                  std::min(costMs * (1 + kCutWorth), cheapestStart().costMs));
}

void DefaultSearch::keepResult(const Chain &best, int64_t budget) {
  outcome.state.emplace(best.board.state());
  // The starts' costs come from other sums; never end above them.
  if (outcome.state->costMs() > cheapestStart().costMs)
    outcome.state.emplace(cheapestStart().state);
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
