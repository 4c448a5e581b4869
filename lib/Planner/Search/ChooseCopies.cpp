//===- ChooseCopies.cpp - A copy of a table in each group -----------------===//
///
/// \file
/// Descent from two states, the plan and the plan with a copy per group of each
/// replicated table, a table at a time, those that send most first. The first
/// copies add an exchange to a step, which pays only for several tables. In a
/// group a copy is whole, on the device that computes least, or cut evenly by
/// rows or by columns over all devices of the group. At last the better state
/// descends once more, with whole copies on any device.
//===----------------------------------------------------------------------===//

#include "ChooseCopies.h"

#include "Cost/RelayGroups.h"
#include "Forms/FormPrices.h"
#include "Units/PlanCost.h"
#include "Units/SearchOutcome.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <functional>

using namespace neuroshard;

namespace {

/// All copies together must lower the cost by this share: what is nearer is not
/// known.
constexpr double kCopiesWorth = 5e-3;
constexpr int kCopyPasses = 2;
/// Shards and devices x costs that are asked for, and how many at least.
constexpr double kCopyWork = 2e5;
constexpr double kFewestCopyCosts = 48;

class CopyChooser {
public:
  CopyChooser(const SearchContext &context, const ShardingPlan &plan)
      : context(context), groupSize(relayGroupSize(context.problem)),
        original(plan), prices(context, plan, kCopyWork, kFewestCopyCosts),
        tables(prices.given()) {}

  /// The plan with copies; nothing if they are not worth it.
  std::optional<ShardingPlan> run() {
    orderTables();
    if (order.empty())
      return std::nullopt;
    bestMs = withoutMs = costMs(tables);
    busyMs = triedBusyMs;
    std::vector<TableShards> best = tables, all = tables;
    descend(best, bestMs);
    copyReplicated(all);
    double allMs = costMs(all);
    busyMs = triedBusyMs;
    descend(all, allMs);
    if (allMs < bestMs) {
      bestMs = allMs;
      best = std::move(all);
    }
    costMs(best);
    busyMs = triedBusyMs;
    descend(best, bestMs, /*isLast=*/true);
    if (!(bestMs < withoutMs * (1 - kCopiesWorth)))
      return std::nullopt;
    return prices.planOf(best);
  }

  double withoutMs = 0, bestMs = 0;

private:
  /// Finds the tables that may have copies, those that send most first.
  void orderTables() {
    std::vector<double> bytes(tables.size());
    PlanWork work = describePlan(context.problem, original);
    for (size_t i = 0; i < original.shards.size(); ++i) {
      const ShardWork &shard = work.works[i];
      bytes[static_cast<size_t>(shard.table)] +=
          shard.forwardBytes + shard.backwardBytes;
    }
    for (size_t table = 0; table < tables.size(); ++table) {
      const TableRules &rules = context.rulesOf(static_cast<int>(table));
      if (!rules.fixed && rules.allows(ShardingKind::Replicated) &&
          bytes[table] > 0 && (groupSize > 0 || rules.syncEvery > 0))
        order.push_back(table);
    }
    std::ranges::stable_sort(order, std::greater(),
                             [&](size_t table) { return bytes[table]; });
  }

  double costMs(const std::vector<TableShards> &of) {
    return prices.costMs(of, triedBusyMs);
  }

  /// Copies each table, or takes its shards back, where that is cheaper.
  /// The last time at all places in a group.
  void descend(std::vector<TableShards> &of, double &cost,
               bool isLast = false) {
    for (int pass = 0; pass < kCopyPasses; ++pass) {
      double before = cost;
      for (size_t table : order) {
        std::vector<TableShards> forms = copiesOf(table);
        forms.push_back(tables[table]);
        if (isLast)
          addPlaces(table, forms);
        for (TableShards &form : forms) {
          if (prices.isDone())
            return;
          if (form == of[table])
            continue;
          std::swap(form, of[table]);
          if (double other = costMs(of); other < cost) {
            cost = other;
            busyMs = triedBusyMs;
          } else {
            std::swap(form, of[table]);
          }
        }
      }
      if (cost == before)
        return;
    }
  }

  /// On devices in turn: what each table adds is only known later.
  void copyReplicated(std::vector<TableShards> &of) {
    double each = std::ranges::max(busyMs) / static_cast<double>(order.size());
    for (size_t table : order) {
      if (groupSize == 0 || !of[table].front().hasCopies())
        continue;
      of[table] = wholeCopy(table);
      for (int device : of[table].front().devices)
        busyMs[static_cast<size_t>(device)] += each;
    }
  }

  /// A copy in each group, whole or cut over the group.
  std::vector<TableShards> copiesOf(size_t table) const {
    std::vector<TableShards> forms;
    if (context.rulesOf(static_cast<int>(table)).syncEvery > 0)
      forms.push_back(copyOnAll(table));
    if (groupSize == 0)
      return forms;
    forms.push_back(wholeCopy(table));
    const Table &source = context.table(static_cast<int>(table));
    forms.push_back(cutCopy(table, source.rows, 1,
                            [](Shard &shard, int64_t begin, int64_t end) {
                              shard.rowBegin = begin;
                              shard.rowEnd = end;
                            }));
    forms.push_back(cutCopy(table, source.dim, kColumnAlignment,
                            [](Shard &shard, int64_t begin, int64_t end) {
                              shard.colBegin = begin;
                              shard.colEnd = end;
                            }));
    std::erase_if(forms, std::mem_fn(&TableShards::empty));
    return forms;
  }

  /// Whole copies on each device of the first group and those like it.
  void addPlaces(size_t table, std::vector<TableShards> &forms) const {
    for (int index = 0; index < groupSize; ++index) {
      Shard shard = newShard(table);
      placeInGroups(shard, index);
      forms.push_back({shard});
    }
  }

  /// On the device of this index in each group.
  void placeInGroups(Shard &shard, int index) const {
    for (int device = index; device < context.deviceCount; device += groupSize)
      shard.devices.push_back(device);
  }

  Shard newShard(size_t table) const {
    const Table &source = context.table(static_cast<int>(table));
    Shard shard = tables[table].front();
    shard.rowBegin = shard.colBegin = 0;
    shard.rowEnd = source.rows;
    shard.colEnd = source.dim;
    shard.devices.clear();
    shard.route = Route::Auto;
    shard.syncEvery = context.rulesOf(static_cast<int>(table)).syncEvery;
    return shard;
  }

  TableShards copyOnAll(size_t table) const {
    Shard shard = newShard(table);
    for (int device = 0; device < context.deviceCount; ++device)
      shard.devices.push_back(device);
    return {shard};
  }

  TableShards wholeCopy(size_t table) const {
    Shard shard = newShard(table);
    for (auto first = busyMs.begin(); first != busyMs.end(); first += groupSize)
      shard.devices.push_back(static_cast<int>(
          std::min_element(first, first + groupSize) - busyMs.begin()));
    return {shard};
  }

  /// Device k of each group has the k-th part; nothing if there are fewer.
  template <typename SetRange>
  TableShards cutCopy(size_t table, int64_t size, int64_t unit,
                      const SetRange &setRange) const {
    int64_t units = (size + unit - 1) / unit;
    if (units < groupSize)
      return {};
    TableShards shards;
    for (int64_t k = 0; k < groupSize; ++k) {
      Shard shard = newShard(table);
      shard.name += "_copy" + std::to_string(k);
      setRange(shard, units * k / groupSize * unit,
               std::min(size, units * (k + 1) / groupSize * unit));
      placeInGroups(shard, static_cast<int>(k));
      shards.push_back(std::move(shard));
    }
    return shards;
  }

  const SearchContext &context;
  int groupSize;
  const ShardingPlan &original;
  FormPrices prices;
  const std::vector<TableShards> &tables; ///< of the original.
  std::vector<size_t> order;
  /// How long each device computes: under the plan at hand, and the last tried.
  std::vector<double> busyMs, triedBusyMs;
};

} // namespace

std::optional<std::string>
neuroshard::chooseCopies(const SearchContext &context, ShardingPlan &plan) {
  const Constraints &constraints = context.problem.constraints;
  bool mayDrift = std::ranges::any_of(constraints.tables,
                                      [](const TableConstraint &constraint) {
                                        return constraint.syncEvery > 0;
                                      });
  if ((relayGroupSize(context.problem) == 0 && !mayDrift) ||
      !constraints.pins.empty() || !constraints.forbids.empty() ||
      !constraints.coLocate.empty() || !constraints.separate.empty() ||
      !verify(plan, context.problem).empty())
    return std::nullopt;
  CopyChooser chooser(context, plan);
  std::optional<ShardingPlan> copied = chooser.run();
  if (!copied)
    return std::nullopt;
  plan = std::move(*copied);
  int count = countCopiedTables(context, plan);
  return std::to_string(count) + (count == 1 ? " table has" : " tables have") +
         " copies: " + formatMs(chooser.bestMs) + ", " +
         formatMs(chooser.withoutMs) + " without";
}
