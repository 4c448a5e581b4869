//===- ChooseTiers.cpp - Tiers and caches of all tables -------------------===//

#include "ChooseTiers.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

/// Prices are found between these, in ms per byte, to a factor of about 1.01.
constexpr double kLeastPrice = 1e-18, kMostPrice = 1e3;
constexpr int kHalvings = 12;
/// How often the prices of host memory and of disks are found in turn.
constexpr int kRounds = 3;

/// ms for each byte of hosts.
struct Prices {
  double host = 0, disk = 0;
};

class TierChooser {
public:
  TierChooser(std::span<const TieredTable> tables, const TierBytes &room)
      : tables(tables), room(room) {}

  std::optional<TierChoice> run() {
    Prices prices;
    TierChoice choice = solve(prices);
    for (int round = 0; round < kRounds && !choice.bytes.fitsInto(room);
         ++round) {
      if (choice.bytes.host > room.host)
        raise(prices.host, prices, &TierBytes::host);
      choice = solve(prices);
      if (choice.bytes.disk > room.disk)
        raise(prices.disk, prices, &TierBytes::disk);
      choice = solve(prices);
    }
    if (!choice.bytes.fitsInto(room))
      return std::nullopt;
    fill(choice);
    return choice;
  }

private:
  /// A step along the hull of a table.
  struct Step {
    size_t table = 0;
    size_t from = 0, to = 0; ///< options.
    double bytes = 0;
    double savedPerByte = 0;
  };

  static double valueOf(const TierOption &option, const Prices &prices) {
    return option.ms + prices.host * option.bytes.host +
           prices.disk * option.bytes.disk;
  }

  /// Raises a price to the least one at which the bytes have room, or to the
  /// highest.
  void raise(double &price, Prices &prices, double TierBytes::*bytes) {
    auto fits = [&] { return solve(prices).bytes.*bytes <= room.*bytes; };
    price = std::max(price, kLeastPrice);
    double low = price;
    while (price < kMostPrice && !fits()) {
      low = price;
      price *= 10;
    }
    double high = price;
    for (int i = 0; i < kHalvings; ++i) {
      price = std::sqrt(low * high);
      (fits() ? high : low) = price;
    }
    price = high;
  }

  /// The options of a table on the lower hull, by bytes of device memory.
  std::vector<size_t> hullOf(const TieredTable &table,
                             const Prices &prices) const {
    std::vector<size_t> order(table.options.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    auto bytes = [&](size_t i) { return table.options[i].bytes.device; };
    auto value = [&](size_t i) { return valueOf(table.options[i], prices); };
    std::ranges::sort(order, [&](size_t a, size_t b) {
      return std::tuple(bytes(a), value(a), a) <
             std::tuple(bytes(b), value(b), b);
    });
    std::vector<size_t> hull;
    for (size_t next : order) {
      if (!hull.empty() && value(next) >= value(hull.back()))
        continue;
      auto isAbove = [&](size_t a, size_t b) {
        return (value(a) - value(b)) * (bytes(next) - bytes(b)) <=
               (value(b) - value(next)) * (bytes(b) - bytes(a));
      };
      while (hull.size() > 1 && isAbove(hull[hull.size() - 2], hull.back()))
        hull.pop_back();
      hull.push_back(next);
    }
    return hull;
  }

  TierChoice solve(const Prices &prices) const {
    TierChoice choice;
    std::vector<Step> steps;
    for (size_t i = 0; i < tables.size(); ++i) {
      const std::vector<TierOption> &options = tables[i].options;
      std::vector<size_t> hull = hullOf(tables[i], prices);
      choice.options.push_back(hull.front());
      choice.bytes += options[hull.front()].bytes;
      for (size_t k = 1; k < hull.size(); ++k) {
        const TierOption &from = options[hull[k - 1]], &to = options[hull[k]];
        double bytes = to.bytes.device - from.bytes.device;
        steps.push_back(
            {i, hull[k - 1], hull[k], bytes,
             (valueOf(from, prices) - valueOf(to, prices)) / bytes});
      }
    }
    std::ranges::stable_sort(steps, std::greater(), &Step::savedPerByte);
    for (const Step &step : steps)
      if (choice.options[step.table] == step.from &&
          choice.bytes.device + step.bytes <= room.device)
        change(choice, step.table, step.to);
    return choice;
  }

  void change(TierChoice &choice, size_t table, size_t option) const {
    choice.bytes -= optionOf(choice, table).bytes;
    choice.options[table] = option;
    choice.bytes += optionOf(choice, table).bytes;
  }

  const TierOption &optionOf(const TierChoice &choice, size_t table) const {
    return tables[table].options[choice.options[table]];
  }

  bool fitsWith(const TierChoice &choice, size_t table,
                const TierOption &option) const {
    TierBytes bytes = choice.bytes;
    bytes -= optionOf(choice, table).bytes;
    bytes += option.bytes;
    return bytes.fitsInto(room);
  }

  /// Gives what is left to tables, the one that it saves most first; then
  /// those that fit into device memory lie there.
  void fill(TierChoice &choice) const {
    for (;;) {
      double most = 0;
      size_t best = 0, bestOption = 0;
      for (size_t i = 0; i < tables.size(); ++i)
        for (size_t k = 0; k < tables[i].options.size(); ++k) {
          const TierOption &option = tables[i].options[k];
          double saved = optionOf(choice, i).ms - option.ms;
          if (saved > most && fitsWith(choice, i, option)) {
            most = saved;
            best = i;
            bestOption = k;
          }
        }
      if (most <= 0)
        break;
      change(choice, best, bestOption);
    }
    for (size_t i = 0; i < tables.size(); ++i)
      if (const TierOption &first = tables[i].options.front();
          first.tier == Tier::Hbm && fitsWith(choice, i, first))
        change(choice, i, 0);
    for (size_t i = 0; i < tables.size(); ++i)
      choice.ms += optionOf(choice, i).ms;
  }

  std::span<const TieredTable> tables;
  const TierBytes &room;
};

TableConstraint &constraintOf(ShardingProblem &problem, int table) {
  std::vector<TableConstraint> &all = problem.constraints.tables;
  auto found = std::ranges::find(all, table, &TableConstraint::table);
  if (found != all.end())
    return *found;
  all.emplace_back().table = table;
  return all.back();
}

} // namespace

std::optional<TierChoice>
neuroshard::chooseTiers(std::span<const TieredTable> tables,
                        const TierBytes &room) {
  return TierChooser(tables, room).run();
}

TierBytes neuroshard::leastBytes(std::span<const TieredTable> tables) {
  TierBytes least;
  for (const TieredTable &table : tables)
    least +=
        std::ranges::min_element(table.options, {}, [](const TierOption &one) {
          return one.bytes.device;
        })->bytes;
  return least;
}

ShardingProblem neuroshard::withTiers(const ShardingProblem &problem,
                                      std::span<const TieredTable> tables,
                                      const TierChoice &choice) {
  ShardingProblem result = problem;
  for (size_t i = 0; i < tables.size(); ++i) {
    const TierOption &option = tables[i].options[choice.options[i]];
    if (option.tier == Tier::Hbm)
      continue;
    TableConstraint &constraint = constraintOf(result, tables[i].table);
    auto rows = static_cast<double>(
        problem.tables[static_cast<size_t>(tables[i].table)].rows);
    constraint.cacheShare =
        std::min(1.0, static_cast<double>(option.cacheRows) / rows);
    constraint.tier = option.tier;
  }
  return result;
}
