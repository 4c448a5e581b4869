//===- Placement.cpp - One pass over the units, each onto a device
//---------===//

#include "Placement.h"

#include <algorithm>
#include <queue>

using namespace neuroshard;

std::vector<size_t>
neuroshard::movableByKey(const SearchState &state,
                         const std::function<double(const Unit &)> &key) {
  std::vector<size_t> order;
  std::vector<double> keys(state.units().size());
  for (size_t i = 0; i < state.units().size(); ++i) {
    keys[i] = key(*state.units()[i]);
    if (state.movable(i) && state.deviceOf(i) == SearchState::kUnplaced)
      order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] > keys[b]; });
  return order;
}

bool neuroshard::placeByCompute(SearchState &state,
                                std::span<const size_t> order, double dimsCap) {
  const SearchContext &context = state.context();
  bool uniform = context.usedClasses.size() == 1;
  for (size_t index : order) {
    const Unit &unit = *state.units()[index];
    int best = -1;
    double bestMs = 0;
    int64_t bestBytes = 0;
    for (int device = 0; device < context.deviceCount; ++device) {
      if (state.loadOf(device).dims + unit.load.dims > dimsCap)
        continue;
      double ms = state.loadOf(device).compute.total();
      if (!uniform)
        ms = state
                 .computeAfter(
                     {.device = device, .added = {&unit}, .removed = {}})
                 .total();
      int64_t bytes = state.usedBytes(device);
      bool better =
          best < 0 || ms < bestMs || (ms == bestMs && bytes < bestBytes);
      if (!better || !state.fits(device, unit))
        continue;
      best = device;
      bestMs = ms;
      bestBytes = bytes;
    }
    if (best < 0)
      return false;
    state.place(index, best);
  }
  return true;
}

bool neuroshard::placeByKey(SearchState &state, std::span<const size_t> order,
                            const std::function<double(const Unit &)> &key) {
  const SearchContext &context = state.context();
  std::vector<double> sums(static_cast<size_t>(context.deviceCount));
  for (size_t index : order) {
    const Unit &unit = *state.units()[index];
    int best = -1;
    for (int device = 0; device < context.deviceCount; ++device) {
      double sum = sums[static_cast<size_t>(device)];
      bool better = best < 0 || sum < sums[static_cast<size_t>(best)] ||
                    (sum == sums[static_cast<size_t>(best)] &&
                     state.usedBytes(device) < state.usedBytes(best));
      if (better && state.fits(device, unit))
        best = device;
    }
    if (best < 0)
      return false;
    sums[static_cast<size_t>(best)] += key(unit);
    state.place(index, best);
  }
  return true;
}

namespace {

/// Shares of a mean device, so that bytes and milliseconds compare.
class Fullness {
public:
  Fullness(const SearchContext &context, const std::vector<UnitPtr> &units,
           Balance balance)
      : balance(balance) {
    for (const UnitPtr &unit : units)
      meanMs += unit->aloneMs() / context.deviceCount;
  }

  /// Of one unit on its own.
  double of(const SearchState &state, const Unit &unit) const {
    double memory = static_cast<double>(unit.peakBytes()) /
                    static_cast<double>(state.context().memoryOf(0));
    return blend(memory, unit.aloneMs());
  }
  /// Of a device.
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

} // namespace

namespace {

/// Steps by which a part that just does not fit is made smaller.
constexpr double kShrink = 0.9;
constexpr int kMaxShrinks = 40;

/// The two parts of a unit of which the first fits on the device.
std::optional<std::vector<UnitPtr>> cutToFit(const SearchState &state,
                                             const Unit &unit, int device) {
  double room =
      static_cast<double>(std::max<int64_t>(0, state.freeBytes(device)));
  double most = std::min(0.999, room / static_cast<double>(unit.peakBytes()));
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
  const SearchContext &context = state.context();
  int best = -1;
  for (int device = 0; device < context.deviceCount; ++device)
    if (allowsDevice(context, unit, device) &&
        (best < 0 || state.freeBytes(device) > state.freeBytes(best)))
      best = device;
  return best;
}

/// The least full device that has room for the unit, or -1.
int leastFullDevice(const SearchState &state, const Unit &unit,
                    const Fullness &fullness) {
  int best = -1;
  double bestFullness = 0;
  for (int device = 0; device < state.context().deviceCount; ++device) {
    double now = fullness.of(state, device);
    if ((best >= 0 && now >= bestFullness) || !state.fits(device, unit))
      continue;
    best = device;
    bestFullness = now;
  }
  return best;
}

} // namespace

std::optional<SearchState>
neuroshard::placeByMemory(const SearchContext &context,
                          const std::vector<UnitPtr> &units, Balance balance,
                          UnitPtr &blocking) {
  SearchState state(context, units);
  Fullness fullness(context, units, balance);
  auto smaller = [&](size_t a, size_t b) {
    double left = fullness.of(state, *state.units()[a]);
    double right = fullness.of(state, *state.units()[b]);
    return left != right ? left < right : a > b;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(smaller)> queue(
      smaller);
  for (size_t i = 0; i < units.size(); ++i)
    if (state.deviceOf(i) == SearchState::kUnplaced)
      queue.push(i);
  // Each cut fills a device up; more cuts than this mean crumbs.
  size_t cutsLeft =
      4 * (units.size() + static_cast<size_t>(context.deviceCount));
  while (!queue.empty()) {
    size_t index = queue.top();
    queue.pop();
    UnitPtr unit = state.units()[index];
    int device = leastFullDevice(state, *unit, fullness);
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
  // Joining columns takes memory everywhere, also where it was counted before.
  if (!state.withinMemory())
    return std::nullopt;
  return state;
}
