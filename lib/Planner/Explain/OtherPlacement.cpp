//===- OtherPlacement.cpp - Cost of a plan with a table elsewhere ---------===//
///
/// \file
/// The plan becomes a SearchState with a unit for each shard. Both costs come
/// from such a state, so that their ratio compares like with like; of plans
/// with copies that no state knows, from whole plans, on fewer devices.
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/OtherPlacement.h"

#include "Cost/ForwardModel.h"
#include "Cost/IdMaps.h"

#include "Units/PlanCost.h"
#include "Units/SearchOutcome.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

/// Number of devices on which a table is tried: those with the least compute.
constexpr size_t kMaxTried = 32;
constexpr size_t kMaxTriedWithCopies = 8;
/// Smaller relative differences of cost are not mentioned.
constexpr double kSame = 5e-4;

/// The plan in place of a previous one tells the context which tables it cuts
/// by columns, and so which shards exchange norms.
SearchOptions optionsFor(const ShardingPlan &plan,
                         const ObjectiveOptions &objective) {
  SearchOptions options;
  options.objective = objective;
  options.threads = 1;
  options.warmStart.emplace().previous = plan;
  return options;
}

/// A unit for each shard, on the devices where the plan has it.
std::vector<UnitPtr> unitsOf(const SearchContext &context,
                             const ShardingPlan &plan) {
  std::vector<UnitPtr> units;
  units.reserve(plan.shards.size());
  for (const Shard &placed : plan.shards) {
    Shard shard = placed;
    int device = Unit::kEverywhere;
    // Of other copies the first stands for all.
    const Table &table = context.table(context.tableIndex(placed.table));
    if (!isWholeOnAll(table, placed, context.deviceCount)) {
      device = placed.devices.front();
      shard.devices.clear();
    }
    units.push_back(makeUnit(context, {std::move(shard)}, device));
  }
  return units;
}

SearchState stateOf(const SearchContext &context, const ShardingPlan &plan) {
  SearchState state(context, unitsOf(context, plan));
  if (relayGroupSize(context.problem) > 0)
    state.setRelays(tableRelays(context.problem, plan.shards));
  return state;
}

OtherPlacement none(std::string why) {
  OtherPlacement result;
  result.text = std::move(why);
  return result;
}

} // namespace

class OtherPlacements::Pricer {
public:
  Pricer(const ShardingProblem &given, const ShardingPlan &plan,
         const CostModel &model, const ObjectiveOptions &objective)
      : problem(withoutIdMaps(given)),
        longer(model, idMapsCost(given, model).totalMs()),
        ofMode(problem, longer), options(optionsFor(plan, objective)),
        context(problem, *ofMode, options), plan(plan),
        hasCopies(countCopiedTables(context, plan) > 0),
        state(stateOf(context, plan)),
        nowMs(hasCopies ? planCostMs(context, plan) : state.costMs()),
        unitsOfTable(given.tables.size()) {
    for (size_t i = 0; i < state.units().size(); ++i)
      unitsOfTable[static_cast<size_t>(state.units()[i]->tables.front())]
          .push_back(i);
  }

  double costMs() const { return nowMs; }
  OtherPlacement whole(int table) const;

private:
  /// The plan without some tables, which are a unit to be placed.
  struct Question {
    UnitPtr unit;
    SearchState state;
    size_t index = 0;
    /// The device on which all of them are whole now, or -1.
    int now = -1;
  };

  bool isCopied(const Table &table) const {
    return std::ranges::any_of(plan.shards, [&](const Shard &shard) {
      return shard.table == table.name && shard.hasCopies();
    });
  }
  std::vector<int> coLocatedWith(int table) const;
  bool mayBeWhole(const std::vector<int> &tables) const;
  int deviceOfWhole(const std::vector<int> &tables) const;
  Question ask(const std::vector<int> &tables) const;
  std::vector<int> devicesFor(const Question &question) const;
  std::string whyNone(const Question &question) const;
  /// Without a cost, and with the reason, if none of the plans is valid.
  OtherPlacement cheapest(Question &question,
                          const std::vector<int> &devices) const;
  ShardingPlan moved(const Question &question, int device) const;
  std::string compare(const OtherPlacement &other) const;

  const ShardingProblem problem;
  const LongerSteps longer;
  const ModelOfMode ofMode;
  const SearchOptions options;
  const SearchContext context;
  const ShardingPlan plan;
  const bool hasCopies; ///< that the state does not know.
  const SearchState state;
  const double nowMs;
  /// Indices of the units of each table.
  std::vector<std::vector<size_t>> unitsOfTable;
};

/// The table first.
std::vector<int> OtherPlacements::Pricer::coLocatedWith(int table) const {
  std::vector<int> tables = {table};
  int leader = context.rulesOf(table).coLocateLeader;
  for (size_t i = 0; leader >= 0 && i < unitsOfTable.size(); ++i) {
    int other = static_cast<int>(i);
    if (other != table && context.rulesOf(other).coLocateLeader == leader)
      tables.push_back(other);
  }
  return tables;
}

bool OtherPlacements::Pricer::mayBeWhole(const std::vector<int> &tables) const {
  return std::ranges::all_of(tables, [&](int table) {
    const TableRules &rules = context.rulesOf(table);
    return !rules.fixed && rules.allows(ShardingKind::TableWise);
  });
}

int OtherPlacements::Pricer::deviceOfWhole(
    const std::vector<int> &tables) const {
  int device = -1;
  for (int table : tables) {
    const std::vector<size_t> &units = unitsOfTable[static_cast<size_t>(table)];
    device = state.deviceOf(units.front());
    if (units.size() > 1 || device == Unit::kEverywhere ||
        isCopied(context.table(table)))
      return -1;
  }
  return device;
}

OtherPlacements::Pricer::Question
OtherPlacements::Pricer::ask(const std::vector<int> &tables) const {
  std::vector<Shard> wholes;
  std::vector<size_t> pieces;
  for (int table : tables) {
    const std::vector<size_t> &units = unitsOfTable[static_cast<size_t>(table)];
    pieces.insert(pieces.end(), units.begin(), units.end());
    const Table &source = context.table(table);
    wholes.push_back(
        {.name = "",
         .table = source.name,
         .rowEnd = source.rows,
         .colEnd = source.dim,
         .devices = {},
         .tier = state.units()[units.front()]->shards.front().tier,
         .cache = state.units()[units.front()]->shards.front().cache});
  }
  std::sort(pieces.begin(), pieces.end());
  Question question = {makeUnit(context, std::move(wholes)), state,
                       pieces.front(), deviceOfWhole(tables)};
  for (size_t i = pieces.size(); i-- > 1;)
    question.state.erase(pieces[i]);
  for (int table : tables)
    question.state.dropRelay(table);
  question.state.replace(question.index, {question.unit});
  return question;
}

/// Devices with room on their hosts, too.
std::vector<int>
OtherPlacements::Pricer::devicesFor(const Question &question) const {
  const SearchState &rest = question.state;
  std::vector<int> devices;
  for (int device = 0; device < context.deviceCount; ++device)
    if (device != question.now && rest.fits(device, *question.unit))
      devices.push_back(device);
  size_t tried =
      std::min(devices.size(), hasCopies ? kMaxTriedWithCopies : kMaxTried);
  std::ranges::partial_sort(
      devices, devices.begin() + static_cast<std::ptrdiff_t>(tried), {},
      [&](int device) {
        return std::pair(rest.loadOf(device).compute.total(), device);
      });
  devices.resize(tried);
  return devices;
}

/// Why devicesFor() is empty.
std::string OtherPlacements::Pricer::whyNone(const Question &question) const {
  const SearchState &rest = question.state;
  std::optional<int64_t> room;
  for (int device = 0; device < context.deviceCount; ++device)
    if (device != question.now && rest.admits(device, *question.unit))
      room = std::max(room.value_or(0), rest.freeBytes(device));
  if (!room)
    return "the rules for the table allow no such device";
  int64_t needed = question.unit->peakBytes();
  if (needed <= *room)
    return "no host has " +
           formatBytes(std::max(question.unit->footprint.hostBytes,
                                question.unit->footprint.diskBytes)) +
           " left for it";
  return "it needs " + formatBytes(needed) + ", and no device has more than " +
         formatBytes(*room) + " left for it";
}

OtherPlacement
OtherPlacements::Pricer::cheapest(Question &question,
                                  const std::vector<int> &devices) const {
  OtherPlacement best;
  for (int device : devices) {
    double costMs;
    if (hasCopies) {
      ShardingPlan other = moved(question, device);
      if (Diagnostics errors = verify(other, context.problem);
          !errors.empty()) {
        if (best.text.empty())
          best.text = errors.front().message;
        continue;
      }
      costMs = planCostMs(context, other);
    } else {
      costMs = question.state.costWith(device, *question.unit);
    }
    if (best.costMs && *best.costMs <= costMs)
      continue;
    best.costMs = costMs;
    best.device = device;
  }
  // costWith() uses the summary, costMs() all snapshots.
  if (!context.periods.empty() && !hasCopies) {
    question.state.place(question.index, best.device);
    best.costMs = question.state.costMs();
  }
  return best;
}

ShardingPlan OtherPlacements::Pricer::moved(const Question &question,
                                            int device) const {
  ShardingPlan other = plan;
  for (const Shard &whole : question.unit->shards) {
    std::erase_if(other.shards, [&](const Shard &shard) {
      return shard.table == whole.table;
    });
    Shard placed = whole;
    placed.name = whole.table;
    auto isTaken = [&](const Shard &shard) {
      return shard.name == placed.name;
    };
    while (std::ranges::any_of(other.shards, isTaken))
      placed.name += "_whole";
    placed.devices = {device};
    other.shards.push_back(std::move(placed));
  }
  return other;
}

std::string
OtherPlacements::Pricer::compare(const OtherPlacement &other) const {
  double change = *other.costMs / nowMs - 1;
  if (std::abs(change) < kSame)
    return "a step would take as long";
  char share[32];
  std::snprintf(share, sizeof share, " (%+.1f %%)", 100 * change);
  return "a step would take " + formatMs(*other.costMs) + share +
         ", on device " + std::to_string(other.device);
}

OtherPlacement OtherPlacements::Pricer::whole(int table) const {
  if (context.rulesOf(table).fixed)
    return none("its shards are written by hand");
  std::vector<int> tables = coLocatedWith(table);
  if (!mayBeWhole(tables))
    return none("the rules for the table leave no other form");
  Question question = ask(tables);
  std::string form = question.now < 0 ? "whole" : "whole on another device";
  for (size_t i = 1; i < tables.size(); ++i)
    form += (i == 1 ? " with '" : ", '") + context.table(tables[i]).name + "'";
  std::vector<int> devices = devicesFor(question);
  if (devices.empty())
    return none(question.now >= 0 && context.deviceCount == 1
                    ? "there is one device"
                    : form + ", " + whyNone(question));
  OtherPlacement best = cheapest(question, devices);
  if (!best.costMs)
    return none(form + ", no device that was tried may have it: " + best.text);
  best.text = form + ", " + compare(best);
  return best;
}

OtherPlacements::OtherPlacements(const ShardingProblem &problem,
                                 const ShardingPlan &plan,
                                 const CostModel &model,
                                 const ObjectiveOptions &objective)
    : pricer(std::make_unique<Pricer>(problem, plan, model, objective)) {}

OtherPlacements::~OtherPlacements() = default;

double OtherPlacements::costMs() const { return pricer->costMs(); }

OtherPlacement OtherPlacements::whole(int table) const {
  return pricer->whole(table);
}
