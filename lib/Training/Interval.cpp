//===- Interval.cpp - Intervals of predictions ----------------------------===//

#include "neuroshard/Training/Interval.h"

#include <algorithm>
#include <map>

using namespace neuroshard;

std::array<std::vector<size_t>, 2>
neuroshard::halves(std::span<const SampleRole> samples,
                   std::span<const size_t> heldOut) {
  std::map<size_t, std::vector<size_t>> byOrigin;
  for (size_t i : heldOut) {
    int64_t origin = samples[i].repeatOf;
    byOrigin[origin >= 0 ? static_cast<size_t>(origin) : i].push_back(i);
  }
  std::array<std::vector<size_t>, 2> sides;
  size_t next = 0;
  for (const auto &[origin, members] : byOrigin) {
    std::vector<size_t> &side = sides[next++ % 2];
    side.insert(side.end(), members.begin(), members.end());
  }
  return sides;
}

PredictionInterval neuroshard::intervalOf(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  // Whole numbers: a twentieth of n + 1 outside on each side.
  size_t outside = std::max<size_t>((ratios.size() + 1) / 20, 1);
  return {ratios[outside - 1], ratios[ratios.size() - outside]};
}

double neuroshard::shareInside(const PredictionInterval &interval,
                               std::span<const double> ratios) {
  if (ratios.empty())
    return 0;
  auto inside = std::count_if(ratios.begin(), ratios.end(), [&](double ratio) {
    return interval.low <= ratio && ratio <= interval.high;
  });
  return static_cast<double>(inside) / static_cast<double>(ratios.size());
}
