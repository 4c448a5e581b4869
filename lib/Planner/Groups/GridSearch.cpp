//===- GridSearch.cpp - Even grids of tables over groups ------------------===//
///
/// \file
/// The links between groups set the price of a step on many groups. Each range
/// of a table's rows has results of all its samples, and each range of columns
/// needs all its ids; what a part costs in each stage of a step is known from a
/// step in which every group has such a part. So random search by these prices
/// comes first, from several seeds, and then random changes by the exact cost
/// of the plan.
//===----------------------------------------------------------------------===//

#include "GridSearch.h"

#include "Cost/RelayGroups.h"
#include "GridBoard.h"
#include "Units/PlanCost.h"
#include "Units/SearchOutcome.h"
#include "Units/SearchThreads.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace neuroshard;

namespace {

/// Ranges of rows, and of columns, that are tried.
constexpr int kRanges[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32};
/// A part is cut no further if it takes less than this share of the step.
constexpr double kSmallPart = 0.05;
/// Cuts inside a group that take up to this times the shortest are kept.
constexpr double kGoodInside = 1.15;
/// A grid is left out if another is so much better, by its longest part and by
/// all of its parts.
constexpr double kMuchBetter = 1.3;
/// Random searches, each with less heat than the one before.
constexpr size_t kSeeds = 8;
constexpr double kHeat = 0.01, kCooler = 0.75;
/// Groups x changes of a seed, and changes at most.
constexpr int64_t kChangeWork = 4'000'000, kMostChanges = 60'000;
/// Exact costs x (devices + shards), and costs at most, in batches.
constexpr double kExactWork = 1e6, kMostExact = 1200;
constexpr size_t kBatch = 8, kMostDraws = 100;
/// Changes that raise the energy by more than this share are not priced.
constexpr double kWorseEnergy = 0.01;
/// The share of the deadline that this search may take.
constexpr double kGridsDeadline = 0.15;
/// More tables balance without being cut.
constexpr size_t kMostTables = 256;

class GridSearch {
public:
  GridSearch(const SearchContext &context, const ShardingPlan &plan,
             double givenMs, int64_t &evaluations)
      : context(context), groupSize(relayGroupSize(context.problem)),
        evaluations(evaluations), givenMs(givenMs) {
    replicas.deviceCount = context.deviceCount;
    std::vector<bool> isReplicated(context.problem.tables.size());
    for (const Shard &shard : plan.shards)
      if (shard.hasCopies()) {
        isReplicated[static_cast<size_t>(context.tableIndex(shard.table))] =
            true;
        replicas.shards.push_back(shard);
      }
    for (size_t table = 0; table < isReplicated.size(); ++table)
      if (!isReplicated[table])
        tables.push_back({static_cast<int>(table), {}});
  }

  std::optional<ShardingPlan> run() {
    if (!isFree() || !priceGrids())
      return std::nullopt;
    std::optional<GridState> best;
    for (const GridState &state : annealSeeds())
      if (double cost = costMs(state); cost < bestMs) {
        bestMs = cost;
        best = state;
      }
    if (!best)
      return std::nullopt;
    improveExactly(*best);
    return planOf(*best);
  }

private:
  /// Whether any part may lie on any device.
  bool isFree() const {
    if (groupSize == 0 || tables.empty() || tables.size() > kMostTables)
      return false;
    auto mayLieAnywhere = [&](const GridTable &one) {
      const TableRules &rules = context.rulesOf(one.table);
      return !rules.fixed && rules.devices.empty() && rules.cacheShare <= 0 &&
             rules.coLocateLeader < 0 && rules.separateSets.empty();
    };
    return std::ranges::all_of(tables, mayLieAnywhere) &&
           std::ranges::all_of(replicas.shards, [&](const Shard &shard) {
             return static_cast<int>(shard.devices.size()) ==
                    context.deviceCount;
           });
  }

  bool isLate() const {
    const std::optional<double> &deadline = context.options.deadlineSeconds;
    return context.deadlinePassed() ||
           (deadline &&
            context.seconds() > startSeconds + kGridsDeadline * *deadline);
  }

  int groupCount() const { return context.deviceCount / groupSize; }

  bool priceGrids() {
    prices.emplace(context, groupSize, replicas);
    context.pool().forEach(tables.size(),
                           [&](size_t i) { priceTable(tables[i]); });
    return std::ranges::none_of(
        tables, [](const GridTable &table) { return table.grids.empty(); });
  }

  void priceTable(GridTable &table) const {
    double smallMs = kSmallPart * givenMs;
    bool isSmall = false;
    for (int rows : kRanges) {
      for (int columns : kRanges) {
        if (rows * columns > groupCount() || isLate())
          break;
        std::vector<PricedGrid> inside =
            pricedInside(table.table, rows, columns);
        if (inside.empty())
          break;
        table.grids.insert(table.grids.end(), inside.begin(), inside.end());
        isSmall = inside.front().wide.totalMs() < smallMs;
        if (isSmall && columns == 1)
          return keepGoodGrids(table.grids);
        if (isSmall)
          break;
      }
    }
    keepGoodGrids(table.grids);
  }

  /// Removes grids for which another has shorter parts that take less in all.
  static void keepGoodGrids(std::vector<PricedGrid> &grids) {
    auto isBad = [&, all = grids](const PricedGrid &one) {
      return std::ranges::any_of(all, [&](const PricedGrid &other) {
        return other.wide.totalMs() * kMuchBetter < one.wide.totalMs() &&
               other.totalMs() * kMuchBetter < one.totalMs();
      });
    };
    std::erase_if(grids, isBad);
    std::ranges::stable_sort(grids, {}, &PricedGrid::totalMs);
  }

  /// The good cuts of a part inside its group. The more ranges of rows there
  /// are, the fewer ids a device reads, and the more values it sends.
  std::vector<PricedGrid> pricedInside(int table, int rows, int columns) const {
    std::vector<PricedGrid> priced;
    double leastMs = std::numeric_limits<double>::infinity();
    int64_t units =
        (context.table(table).dim + kColumnAlignment - 1) / kColumnAlignment;
    for (int innerRows = groupSize; innerRows >= 1; --innerRows) {
      Grid grid{rows, columns, innerRows, groupSize / innerRows};
      if (groupSize % innerRows != 0 || !prices->isPossible(table, grid))
        continue;
      PricedGrid one{grid, prices->priceOf(table, grid, true), {}, {}};
      double ms = one.wide.totalMs();
      if (ms > kGoodInside * leastMs)
        break;
      leastMs = std::min(leastMs, ms);
      one.narrow =
          units % columns == 0 ? one.wide : prices->priceOf(table, grid, false);
      int64_t widest = (units + columns - 1) / columns;
      for (int c = 0; c < columns; ++c)
        one.isWide.push_back(units * (c + 1) / columns - units * c / columns ==
                             widest);
      priced.push_back(std::move(one));
    }
    return priced;
  }

  int64_t roomBytes() const {
    MemoryReport memory = planMemory(context.problem, replicas.shards);
    int64_t room = std::numeric_limits<int64_t>::max();
    for (size_t d = 0; d < memory.devices.size(); ++d)
      room = std::min(room, context.memoryOf(static_cast<int>(d)) -
                                memory.devices[d].peakBytes());
    return room;
  }

  std::vector<GridState> annealSeeds() const {
    int64_t changes = std::min(kMostChanges, kChangeWork / groupCount());
    int64_t room = roomBytes();
    std::vector<GridState> states(kSeeds);
    std::vector<char> found(kSeeds);
    context.pool().forEach(kSeeds, [&](size_t seed) {
      GridBoard board(tables, groupCount(), room);
      if (!board.placeAll())
        return;
      SplitMix64 random(context.options.seed * kSeeds + seed);
      double heat = kHeat * std::pow(kCooler, static_cast<double>(seed));
      board.anneal(changes, heat, random, [&] { return isLate(); });
      states[seed] = board.state();
      found[seed] = true;
    });
    for (size_t seed = kSeeds; seed-- > 0;)
      if (!found[seed])
        states.erase(states.begin() + static_cast<ptrdiff_t>(seed));
    return states;
  }

  ShardingPlan planOf(const GridState &state) const {
    ShardingPlan plan = replicas;
    for (size_t i = 0; i < tables.size(); ++i)
      for (size_t part = 0; part < state.groups[i].size(); ++part)
        for (Shard &shard : prices->shardsOf(
                 tables[i].table, tables[i].grids[state.grids[i]].grid,
                 static_cast<int>(part), state.groups[i][part]))
          plan.shards.push_back(std::move(shard));
    return plan;
  }

  double costMs(const GridState &state) const {
    return planCostMs(context, planOf(state));
  }

  /// Random changes that hardly raise the energy, by the cost of the plan.
  void improveExactly(GridState &best) {
    GridBoard board(tables, groupCount(), roomBytes());
    board.placeAll();
    board.set(best);
    SplitMix64 random(context.options.seed);
    size_t shards = planOf(best).shards.size();
    double size =
        static_cast<double>(shards + static_cast<size_t>(context.deviceCount));
    auto left = static_cast<int64_t>(std::min(kMostExact, kExactWork / size));
    for (; left > 0 && !isLate(); left -= static_cast<int64_t>(kBatch)) {
      std::vector<GridState> tried;
      double limit = board.energy() * (1 + kWorseEnergy);
      for (size_t i = 0; i < kBatch * kMostDraws && tried.size() < kBatch; ++i)
        if (std::optional<GridState> other = board.changed(random, limit))
          tried.push_back(std::move(*other));
      std::vector<double> costs(tried.size());
      context.pool().forEach(tried.size(),
                             [&](size_t i) { costs[i] = costMs(tried[i]); });
      evaluations += static_cast<int64_t>(tried.size());
      auto least = std::ranges::min_element(costs);
      if (least == costs.end() || *least >= bestMs)
        continue;
      bestMs = *least;
      best = tried[static_cast<size_t>(least - costs.begin())];
      board.set(best);
    }
  }

  const SearchContext &context;
  int groupSize;
  int64_t &evaluations;
  /// Of the given plan.
  double givenMs;
  double startSeconds = context.seconds();
  double bestMs = std::numeric_limits<double>::infinity();
  ShardingPlan replicas;
  std::optional<GridPrices> prices;
  std::vector<GridTable> tables;
};

} // namespace

std::optional<ShardingPlan>
neuroshard::searchGrids(const SearchContext &context, const ShardingPlan &plan,
                        double costMs, int64_t &evaluations) {
  return GridSearch(context, plan, costMs, evaluations).run();
}
