//===- GridBoard.cpp - Parts of tables on groups, by their prices ---------===//

#include "GridBoard.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

using namespace neuroshard;

/// A maximum over groups is smoothed to a p-norm, p = 2^7.
static constexpr int kSquarings = 7;
/// Of random changes, those that cut a table otherwise and those that move a
/// part; the others swap two parts.
static constexpr double kRecuts = 0.5, kMoves = 0.3;
/// Tries for which a table gets a grid near its own in the list.
static constexpr double kNearGrids = 0.7;
static constexpr int64_t kNear = 8;
/// The heat at the end, as a share of that at the beginning.
static constexpr double kLastHeat = 1e-3;
/// Steps after which sums are made again, since differences round.
static constexpr int64_t kFreshSums = 4096;

double PricedGrid::totalMs() const {
  double total = 0;
  for (int part = 0; part < grid.parts(); ++part)
    total += priceOf(part).totalMs();
  return total;
}

GridBoard::GridBoard(const std::vector<GridTable> &tables, int groupCount,
                     int64_t memoryBytes)
    : tables(tables), memoryBytes(memoryBytes),
      groups(static_cast<size_t>(groupCount)) {
  current.grids.resize(tables.size());
  current.groups.resize(tables.size());
}

double GridBoard::power(double ms) const {
  double x = ms * scale;
  for (int i = 0; i < kSquarings; ++i)
    x *= x;
  return x;
}

/// Afresh, since differences of powers round.
StageMs GridBoard::sumsOfPowers() const {
  StageMs sums = {};
  for (const Group &group : groups)
    for (size_t k = 0; k < kGridStages; ++k)
      sums[k] += group.powers[k];
  return sums;
}

double GridBoard::energy() const {
  double sum = 0;
  for (double all : sumsOfPowers())
    sum += std::pow(all, 1.0 / (1 << kSquarings));
  return sum / scale;
}

void GridBoard::add(size_t table, int part, int group, double sign) {
  const PartPrice &price = priceOf(table, part);
  Group &to = groups[static_cast<size_t>(group)];
  to.bytes += static_cast<int64_t>(sign) * price.bytes;
  for (size_t k = 0; k < kGridStages; ++k) {
    to.ms[k] = std::max(0.0, to.ms[k] + sign * price.ms[k]);
    to.powers[k] = power(to.ms[k]);
  }
}

void GridBoard::set(const GridState &state) {
  std::ranges::fill(groups, Group());
  current = state;
  for (size_t table = 0; table < tables.size(); ++table)
    for (size_t part = 0; part < current.groups[table].size(); ++part)
      add(table, static_cast<int>(part), current.groups[table][part], 1);
}

/// Where it raises the energy least, to first order; -1 if there is no room.
int GridBoard::bestGroup(const PartPrice &price) const {
  StageMs slopes = sumsOfPowers();
  for (double &slope : slopes)
    slope = std::pow(std::max(1e-200, slope), 1.0 / (1 << kSquarings) - 1);
  int best = -1;
  double least = std::numeric_limits<double>::infinity();
  for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
    if (!hasRoom(group, price))
      continue;
    const Group &one = groups[static_cast<size_t>(group)];
    double rise = 0;
    for (size_t k = 0; k < kGridStages; ++k)
      rise += slopes[k] * (power(one.ms[k] + price.ms[k]) - one.powers[k]);
    if (rise < least) {
      least = rise;
      best = group;
    }
  }
  return best;
}

bool GridBoard::placeParts(size_t table, size_t grid) {
  current.grids[table] = grid;
  int parts = tables[table].grids[grid].grid.parts();
  for (int part = 0; part < parts; ++part) {
    int group = bestGroup(priceOf(table, part));
    if (group < 0)
      return false;
    add(table, part, group, 1);
    current.groups[table].push_back(group);
  }
  return true;
}

void GridBoard::removeParts(size_t table) {
  for (size_t part = 0; part < current.groups[table].size(); ++part)
    add(table, static_cast<int>(part), current.groups[table][part], -1);
  current.groups[table].clear();
}

void GridBoard::remember(size_t table) {
  before.push_back({table, current.grids[table], current.groups[table]});
}

void GridBoard::undo() {
  for (; !before.empty(); before.pop_back()) {
    Before &last = before.back();
    removeParts(last.table);
    current.grids[last.table] = last.grid;
    current.groups[last.table] = std::move(last.groups);
    for (size_t part = 0; part < current.groups[last.table].size(); ++part)
      add(last.table, static_cast<int>(part), current.groups[last.table][part],
          1);
  }
}

/// The cheapest grid of each table whose parts take no longer than the limit,
/// or the one with the shortest parts.
std::vector<size_t> GridBoard::grids(double limitMs) const {
  std::vector<size_t> chosen;
  for (const GridTable &table : tables) {
    auto key = [&](size_t grid) {
      const PricedGrid &one = table.grids[grid];
      double longest = std::max(one.wide.totalMs(), limitMs);
      return std::pair(longest, one.totalMs());
    };
    size_t best = 0;
    for (size_t grid = 1; grid < table.grids.size(); ++grid)
      if (key(grid) < key(best))
        best = grid;
    chosen.push_back(best);
  }
  return chosen;
}

bool GridBoard::placeAll() {
  auto groupCount = static_cast<double>(groups.size());
  auto meanMs = [&](const std::vector<size_t> &chosen) {
    double sum = 0;
    for (size_t i = 0; i < tables.size(); ++i)
      sum += tables[i].grids[chosen[i]].totalMs();
    return sum / groupCount;
  };
  // The least time in which groups that are even have parts this long.
  double low = 0, high = 1e-3;
  while (meanMs(grids(high)) > high && high < 1e12)
    high *= 2;
  for (int i = 0; i < 30; ++i) {
    double middle = (low + high) / 2;
    (meanMs(grids(middle)) > middle ? low : high) = middle;
  }
  scale = 1 / high;
  std::vector<size_t> chosen = grids(high);
  set({chosen, std::vector<std::vector<int>>(tables.size())});
  std::vector<size_t> order;
  for (size_t i = 0; i < tables.size(); ++i)
    order.push_back(i);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) {
    return tables[i].grids[chosen[i]].wide.totalMs();
  });
  return std::ranges::all_of(
      order, [&](size_t table) { return placeParts(table, chosen[table]); });
}

bool GridBoard::recut(SplitMix64 &random) {
  auto table = static_cast<size_t>(random.below(tables.size()));
  auto count = static_cast<int64_t>(tables[table].grids.size());
  int64_t grid = random.below(static_cast<uint64_t>(count));
  if (random.real() < kNearGrids)
    grid = std::clamp<int64_t>(static_cast<int64_t>(current.grids[table]) +
                                   random.below(2 * kNear + 1) - kNear,
                               0, count - 1);
  remember(table);
  removeParts(table);
  return placeParts(table, static_cast<size_t>(grid));
}

bool GridBoard::movePart(SplitMix64 &random) {
  auto table = static_cast<size_t>(random.below(tables.size()));
  std::vector<int> &of = current.groups[table];
  auto part = static_cast<size_t>(random.below(of.size()));
  int group = static_cast<int>(random.below(groups.size()));
  remember(table);
  add(table, static_cast<int>(part), of[part], -1);
  if (random.real() < 0.5)
    group = bestGroup(priceOf(table, static_cast<int>(part)));
  bool fits =
      group >= 0 && hasRoom(group, priceOf(table, static_cast<int>(part)));
  of[part] = fits ? group : of[part];
  add(table, static_cast<int>(part), of[part], 1);
  return fits;
}

bool GridBoard::swapParts(SplitMix64 &random) {
  auto one = static_cast<size_t>(random.below(tables.size()));
  auto other = static_cast<size_t>(random.below(tables.size()));
  if (one == other)
    return false;
  auto a = static_cast<size_t>(random.below(current.groups[one].size()));
  auto b = static_cast<size_t>(random.below(current.groups[other].size()));
  remember(one);
  remember(other);
  int &groupA = current.groups[one][a], &groupB = current.groups[other][b];
  add(one, static_cast<int>(a), groupA, -1);
  add(other, static_cast<int>(b), groupB, -1);
  std::swap(groupA, groupB);
  add(one, static_cast<int>(a), groupA, 1);
  add(other, static_cast<int>(b), groupB, 1);
  return groups[static_cast<size_t>(groupA)].bytes <= memoryBytes &&
         groups[static_cast<size_t>(groupB)].bytes <= memoryBytes;
}

bool GridBoard::change(SplitMix64 &random) {
  before.clear();
  double kind = random.real();
  return kind < kRecuts            ? recut(random)
         : kind < kRecuts + kMoves ? movePart(random)
                                   : swapParts(random);
}

std::optional<GridState> GridBoard::changed(SplitMix64 &random,
                                            double limitMs) {
  std::optional<GridState> state;
  if (GridState old = current;
      change(random) && energy() <= limitMs && !(current == old))
    state = current;
  undo();
  return state;
}

void GridBoard::anneal(int64_t steps, double heat, SplitMix64 &random,
                       const std::function<bool()> &isLate) {
  double now = energy(), least = now;
  GridState best = current;
  for (int64_t step = 0; step < steps; ++step) {
    double share = static_cast<double>(step) / static_cast<double>(steps);
    double warmth = heat * now * std::pow(kLastHeat, share);
    bool fits = change(random);
    double then = energy();
    if (!fits || then > now - warmth * std::log(1 - random.real())) {
      undo();
    } else {
      now = then;
      if (now < least) {
        least = now;
        best = current;
      }
    }
    if (step % kFreshSums == 0) {
      if (isLate())
        break;
      set(GridState(current));
      now = energy();
    }
  }
  set(best);
}
