//===- Placement.cpp - Greedy placement by a key or by memory -------------===//

#include "Placement.h"

#include <algorithm>
#include <queue>
#include <tuple>

using namespace neuroshard;

namespace {

/// How often a part that does not quite fit is made smaller.
constexpr double kShrink = 0.9;
constexpr int kMaxShrinks = 40;

/// The device with the smallest (first, second) among those with room, or -1.
/// A separated table stays on its devices while they have room, which leaves
/// others to the tables it is separated from.
template <typename Eligible, typename First, typename Second>
int chooseDevice(const SearchState &state, const Unit &unit, Eligible eligible,
                 First first, Second second) {
  bool separated = isSeparated(state.context(), unit);
  int best = -1;
  std::tuple<bool, double, double> bestKey;
  for (int device = 0; device < state.context().deviceCount; ++device) {
    if (!eligible(device))
      continue;
    bool elsewhere =
        separated && !state.totals().separation().holds(device, unit);
    std::tuple<bool, double, double> key(elsewhere, first(device),
                                         second(device));
    if ((best >= 0 && key >= bestKey) || !state.fits(device, unit))
      continue;
    best = device;
    bestKey = key;
  }
  return best;
}

/// Memory and compute as shares of a mean device, so that they compare.
class Fullness {
public:
  Fullness(const SearchContext &context, const std::vector<UnitPtr> &units,
           Balance balance)
      : balance(balance) {
    for (const UnitPtr &unit : units)
      meanMs += unit->aloneMs() / context.deviceCount;
  }

  /// The share of one unit alone.
  double of(const SearchState &state, const Unit &unit) const {
    const Host &host = state.context().problem.topology.hosts.front();
    double memory = std::max(
        static_cast<double>(unit.peakBytes()) /
            static_cast<double>(state.context().memoryOf(0)),
        static_cast<double>(unit.footprint.hostBytes) /
            static_cast<double>(std::max<int64_t>(1, host.memoryBytes)));
    return blend(memory, unit.aloneMs());
  }
  /// The share of the units on a device.
  double of(const SearchState &state, int device) const {
    double capacity = static_cast<double>(state.context().memoryOf(device));
    double memory = static_cast<double>(state.usedBytes(device)) / capacity;
    return blend(memory, state.loadOf(device).compute.total());
  }

private:
  double blend(double memory, double ms) const {
    if (balance == Balance::Memory || meanMs <= 0)
      return memory;
    double compute = ms / meanMs;
    return memory * memory + compute * compute;
  }

  Balance balance;
  double meanMs = 0;
};

/// The unit in two parts, the first as large as fits on the device.
std::optional<std::vector<UnitPtr>> cutToFit(const SearchState &state,
                                             const Unit &unit, int device) {
  double most = std::min(0.999, state.roomFor(device, unit));
  auto cut = [&](Cut direction) -> std::optional<std::vector<UnitPtr>> {
    double share = most;
    for (int i = 0; i < kMaxShrinks; ++i, share *= kShrink) {
      auto parts = cutAtShare(state.context(), unit, share, direction);
      if (!parts || state.fits(device, *parts->front()))
        return parts;
    }
    return std::nullopt;
  };
  return betterCut(cut(Cut::Columns), cut(Cut::Rows));
}

/// The device with the most room among those the unit may be on, or -1.
int roomiestDevice(const SearchState &state, const Unit &unit) {
  int best = -1;
  for (int device = 0; device < state.context().deviceCount; ++device)
    if (state.admits(device, unit) &&
        (best < 0 || state.roomFor(device, unit) > state.roomFor(best, unit)))
      best = device;
  return best;
}

} // namespace

std::vector<size_t>
neuroshard::movableByKey(const SearchState &state,
                         const std::function<double(const Unit &)> &key) {
  std::vector<size_t> order;
  std::vector<std::pair<int, double>> ranks(state.units().size());
  for (size_t i = 0; i < state.units().size(); ++i) {
    const Unit &unit = *state.units()[i];
    ranks[i] = {freedomOf(state.context(), unit), -key(unit)};
    if (state.movable(i) && state.deviceOf(i) == SearchState::kUnplaced)
      order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
  return order;
}

bool neuroshard::placeByKey(SearchState &state, std::span<const size_t> order,
                            const std::function<double(const Unit &)> &key) {
  std::vector<double> sums(static_cast<size_t>(state.context().deviceCount));
  for (size_t index : order) {
    const Unit &unit = *state.units()[index];
    int device = chooseDevice(
        state, unit, [](int) { return true; },
        [&](int d) { return sums[static_cast<size_t>(d)]; },
        [&](int d) { return static_cast<double>(state.usedBytes(d)); });
    if (device < 0)
      return false;
    sums[static_cast<size_t>(device)] += key(unit);
    state.place(index, device);
  }
  return true;
}

std::optional<SearchState>
neuroshard::placeByMemory(const SearchContext &context,
                          const std::vector<UnitPtr> &units, Balance balance,
                          UnitPtr &blocking) {
  SearchState state(context, units);
  Fullness fullness(context, units, balance);
  auto later = [&](size_t a, size_t b) {
    const Unit &left = *state.units()[a], &right = *state.units()[b];
    return std::tuple(-freedomOf(context, left), fullness.of(state, left), b) <
           std::tuple(-freedomOf(context, right), fullness.of(state, right), a);
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> queue(
      later);
  for (size_t i = 0; i < units.size(); ++i)
    if (state.deviceOf(i) == SearchState::kUnplaced)
      queue.push(i);
  // Each cut fills a device, so that more cuts than this give tiny shards.
  size_t cutsLeft =
      4 * (units.size() + static_cast<size_t>(context.deviceCount));
  while (!queue.empty()) {
    size_t index = queue.top();
    queue.pop();
    UnitPtr unit = state.units()[index];
    int device = chooseDevice(
        state, *unit, [](int) { return true; },
        [&](int d) { return fullness.of(state, d); }, [](int) { return 0; });
    if (device >= 0) {
      state.place(index, device);
      continue;
    }
    device = roomiestDevice(state, *unit);
    std::optional<std::vector<UnitPtr>> parts;
    if (device >= 0 && cutsLeft-- > 0)
      parts = cutToFit(state, *unit, device);
    if (!parts) {
      blocking = unit;
      return std::nullopt;
    }
    std::vector<size_t> indices = state.replace(index, *parts);
    state.place(indices[0], device);
    queue.push(indices[1]);
  }
  // Column cuts add memory on every device, also on those filled before.
  if (!state.withinMemory())
    return std::nullopt;
  return state;
}
