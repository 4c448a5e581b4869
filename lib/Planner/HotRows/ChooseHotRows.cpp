//===- ChooseHotRows.cpp - Copies of the rows that are used most ----------===//
///
/// \file
/// Descent from two states, the plan and the plan with hot rows of each table
/// that may have some, a table at a time, those with most lookups first: hot
/// rows are added and dropped, grow and shrink, and the others move. In small
/// problems tables without an order of rows move, too.
//===----------------------------------------------------------------------===//

#include "ChooseHotRows.h"

#include "Cost/RelayGroups.h"
#include "Forms/FormPrices.h"
#include "HotRowForms.h"
#include "Units/SearchOutcome.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

using namespace neuroshard;

namespace {

/// Other forms must lower the cost by this share: what is nearer is not known.
constexpr double kFormsWorth = 5e-3;
constexpr int kHotRowPasses = 4;
/// Shards and devices x costs that are asked for, and how many at least.
constexpr double kFormWork = 4e5;
constexpr double kFewestFormCosts = 96;
/// Devices that are tried for the other rows, the least busy ones.
constexpr size_t kColdPlaces = 8;
/// Tables x devices up to which tables without an order move, too.
constexpr size_t kFewPlaces = 64;
/// Up to so many tables, each form of one is tried with the best forms of the
/// others.
constexpr size_t kJointTables = 4;
/// The share of the lookups that is hot in the second state.
constexpr double kFirstHot = 0.5;
/// By how much hot rows grow and shrink.
constexpr double kHotGrowth[] = {0.5, 0.8, 1.25, 2};

/// One table in a state.
struct PlacedTable {
  TableShards shards;
  HotRowForm form;
};
using PlacedTables = std::vector<PlacedTable>;

class HotRowChooser {
public:
  HotRowChooser(const SearchContext &context, const ShardingPlan &plan)
      : context(context), groupSize(relayGroupSize(context.problem)),
        original(plan), prices(context, plan, kFormWork, kFewestFormCosts),
        given(prices.given()) {}

  /// The plan with other forms; nothing if they are not worth it.
  std::optional<ShardingPlan> run() {
    findTables();
    if (forms.empty())
      return std::nullopt;
    PlacedTables best;
    for (const TableShards &shards : given)
      best.push_back({shards, {}});
    PlacedTables all = best;
    withoutMs = bestMs = costMs(best);
    busyMs = triedBusyMs;
    descend(best, bestMs);
    for (const auto &[table, form] : forms)
      addHalf(form, all[table]);
    double allMs = costMs(all);
    busyMs = triedBusyMs;
    descend(all, allMs);
    if (allMs < bestMs) {
      bestMs = allMs;
      best = std::move(all);
    }
    if (forms.size() + movable.size() <= kJointTables)
      descendJointly(best);
    if (!(bestMs < withoutMs * (1 - kFormsWorth)))
      return std::nullopt;
    return prices.planOf(shardsOf(best));
  }

  double withoutMs = 0, bestMs = 0;

private:
  /// Finds the tables that may have hot rows, those with most lookups first,
  /// and the others that may move.
  void findTables() {
    std::vector<double> values(given.size());
    PlanWork work = describePlan(context.problem, original);
    for (const ShardWork &shard : work.works)
      values[static_cast<size_t>(shard.table)] += shard.lookupValues();
    std::vector<size_t> tables(given.size());
    std::iota(tables.begin(), tables.end(), size_t{0});
    std::ranges::stable_sort(tables, std::greater(),
                             [&](size_t table) { return values[table]; });
    bool isSmall =
        given.size() * static_cast<size_t>(context.deviceCount) <= kFewPlaces;
    for (size_t table : tables) {
      int index = static_cast<int>(table);
      const TableRules &rules = context.rulesOf(index);
      if (rules.fixed || rules.cacheShare > 0 || rules.syncEvery > 0 ||
          given[table].empty() || given[table].front().tier != Tier::Hbm)
        continue;
      if (hasRowsByUse(context.table(index)))
        forms.push_back(
            {table, HotRowForms(context, index, given[table], groupSize)});
      else if (isSmall)
        movable.push_back(table);
    }
  }

  static std::vector<TableShards> shardsOf(const PlacedTables &of) {
    std::vector<TableShards> shards;
    for (const PlacedTable &placed : of)
      shards.push_back(placed.shards);
    return shards;
  }

  double costMs(const PlacedTables &of) {
    return prices.costMs(shardsOf(of), triedBusyMs);
  }

  /// Keeps a table's other form if it is cheaper.
  bool tryForm(PlacedTables &of, double &cost, size_t table,
               PlacedTable other) {
    if (prices.isDone() || other.shards.empty() ||
        other.shards == of[table].shards)
      return false;
    std::swap(other, of[table]);
    double changed = costMs(of);
    if (changed < cost) {
      cost = changed;
      busyMs = triedBusyMs;
      return true;
    }
    std::swap(other, of[table]);
    return false;
  }

  void descend(PlacedTables &of, double &cost) {
    for (int pass = 0; pass < kHotRowPasses && !prices.isDone(); ++pass) {
      double before = cost;
      for (const auto &[table, form] : forms)
        improve(of, cost, table, form);
      for (size_t table : movable)
        move(of, cost, table);
      if (!(cost < before))
        return;
    }
  }

  /// Changes one table, and then the others for it.
  void descendJointly(PlacedTables &best) {
    for (const auto &[table, form] : forms)
      for (const HotRowForm &other : someForms(form))
        tryJointly(best, table, {form.shardsOf(other), other});
    for (size_t table : movable)
      for (TableShards &shards : formsOfMovable(table))
        tryJointly(best, table, {std::move(shards), {}});
  }

  void tryJointly(PlacedTables &best, size_t table, PlacedTable other) {
    if (prices.isDone() || other.shards.empty())
      return;
    PlacedTables tried = best;
    tried[table] = std::move(other);
    double cost = costMs(tried);
    busyMs = triedBusyMs;
    for (const auto &[another, itsForms] : forms)
      if (another != table)
        improve(tried, cost, another, itsForms);
    for (size_t another : movable)
      if (another != table)
        move(tried, cost, another);
    for (const auto &[another, itsForms] : forms)
      if (another == table)
        improve(tried, cost, table, itsForms);
    if (cost < bestMs) {
      bestMs = cost;
      best = std::move(tried);
    }
  }

  /// All parts of the lookups hot, with the others in each form; a copy of the
  /// whole on each device.
  std::vector<HotRowForm> someForms(const HotRowForms &forms) const {
    std::vector<HotRowForm> result;
    for (HotRowForm form : coldForms(forms)) {
      result.push_back(form);
      for (int64_t hot : forms.hotRows()) {
        form.hot = hot;
        result.push_back(form);
      }
    }
    result.push_back({.hot = forms.allRows()});
    return result;
  }

  /// Tries other numbers of hot rows, then other forms of both parts.
  void improve(PlacedTables &of, double &cost, size_t table,
               const HotRowForms &forms) {
    auto tryOne = [&](const HotRowForm &form) {
      return tryForm(of, cost, table, {forms.shardsOf(form), form});
    };
    tryHotRows(of, table, forms, tryOne);
    for (HotRowForm cold : coldForms(forms)) {
      cold.hot = of[table].form.hot;
      cold.perGroup = of[table].form.perGroup;
      cold.copyIndex = of[table].form.copyIndex;
      if (tryOne(cold))
        tryHotRows(of, table, forms, tryOne);
      cold.hot = 0;
      tryOne(cold);
    }
    tryOne({.hot = forms.allRows()});
    for (int index = 0; index < groupSize; ++index) {
      HotRowForm form = of[table].form;
      form.perGroup = true;
      form.copyIndex = index;
      if (form.hot > 0)
        tryOne(form);
    }
    bool grows = true;
    while (grows && of[table].form.hot > 0) {
      grows = false;
      for (double factor : kHotGrowth) {
        HotRowForm form = of[table].form;
        form.hot = std::llround(factor * static_cast<double>(form.hot));
        if (form.hot > 0 && form.hot < forms.allRows())
          grows |= tryOne(form);
      }
    }
  }

  template <typename TryOne>
  void tryHotRows(const PlacedTables &of, size_t table,
                  const HotRowForms &forms, const TryOne &tryOne) const {
    HotRowForm form = of[table].form;
    if (form.cold == ColdForm::AsBefore && !forms.canStayAsBefore())
      form = coldForms(forms).front();
    for (int64_t hot : forms.hotRows()) {
      form.hot = hot;
      tryOne(form);
    }
  }

  std::vector<HotRowForm> coldForms(const HotRowForms &forms) const {
    std::vector<HotRowForm> result;
    for (int device : leastBusy())
      result.push_back({.cold = ColdForm::Whole, .coldDevice = device});
    result.push_back({.cold = ColdForm::Blocks});
    if (forms.canStayAsBefore()) {
      result.push_back({.cold = ColdForm::AsBefore});
      result.push_back({.cold = ColdForm::EvenAsBefore});
      result.push_back({.cold = ColdForm::Between});
    }
    return result;
  }

  std::vector<int> leastBusy() const {
    std::vector<int> devices(static_cast<size_t>(context.deviceCount));
    std::iota(devices.begin(), devices.end(), 0);
    std::ranges::stable_sort(devices, {}, [&](int device) {
      return busyMs[static_cast<size_t>(device)];
    });
    devices.resize(std::min(devices.size(), kColdPlaces));
    return devices;
  }

  void addHalf(const HotRowForms &forms, PlacedTable &placed) const {
    HotRowForm form;
    if (!forms.canStayAsBefore())
      form = coldForms(forms).front();
    auto first = std::ranges::lower_bound(forms.hotRows(),
                                          forms.rowsWithLookups(kFirstHot));
    if (first == forms.hotRows().end())
      return;
    form.hot = *first;
    if (TableShards shards = forms.shardsOf(form); !shards.empty())
      placed = {std::move(shards), form};
  }

  /// As it was, whole on each device, and on all of them.
  std::vector<TableShards> formsOfMovable(size_t table) const {
    const Table &source = context.table(static_cast<int>(table));
    Shard whole;
    whole.name = whole.table = source.name;
    whole.rowEnd = source.rows;
    whole.colEnd = source.dim;
    whole.route = given[table].front().route;
    std::vector<TableShards> result = {given[table]};
    std::vector<int> all(static_cast<size_t>(context.deviceCount));
    std::iota(all.begin(), all.end(), 0);
    for (int device : all) {
      whole.devices = {device};
      result.push_back({whole});
    }
    whole.devices = all;
    result.push_back({whole});
    return result;
  }

  void move(PlacedTables &of, double &cost, size_t table) {
    for (TableShards &shards : formsOfMovable(table))
      tryForm(of, cost, table, {std::move(shards), {}});
  }

  const SearchContext &context;
  int groupSize;
  const ShardingPlan &original;
  FormPrices prices;
  const std::vector<TableShards> &given; ///< of the original.
  std::vector<std::pair<size_t, HotRowForms>> forms;
  std::vector<size_t> movable;
  /// How long each device computes: under the plan at hand, and the last tried.
  std::vector<double> busyMs, triedBusyMs;
};

int countHotTables(const SearchContext &context, const ShardingPlan &plan) {
  return static_cast<int>(
      std::ranges::count_if(plan.shards, [&](const Shard &shard) {
        return shard.hasCopies() && shard.rowBegin == 0 &&
               shard.rowEnd <
                   context.table(context.tableIndex(shard.table)).rows;
      }));
}

} // namespace

std::optional<std::string>
neuroshard::chooseHotRows(const SearchContext &context, ShardingPlan &plan) {
  if (context.problem.target != Target::Native)
    return std::nullopt;
  HotRowChooser chooser(context, plan);
  std::optional<ShardingPlan> chosen = chooser.run();
  if (!chosen)
    return std::nullopt;
  plan = std::move(*chosen);
  int count = countHotTables(context, plan);
  std::string text = count == 0   ? "rows are cut by their lookups"
                     : count == 1 ? "the hot rows of 1 table have copies"
                                  : "the hot rows of " + std::to_string(count) +
                                        " tables have copies";
  text += ": " + formatMs(chooser.bestMs);
  if (std::isfinite(chooser.withoutMs))
    text += ", " + formatMs(chooser.withoutMs) + " without";
  return text;
}
