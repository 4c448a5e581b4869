//===- DriftCorrection.cpp - Takes a machine's drift out of times ---------===//

#include "neuroshard/CostModel/DriftCorrection.h"

#include <algorithm>
#include <cstddef>

using namespace neuroshard;

std::vector<double>
neuroshard::driftFactors(std::span<const double> referenceMs) {
  std::vector<double> times;
  for (double time : referenceMs)
    if (time > 0)
      times.push_back(time);
  std::vector<double> factors(referenceMs.size(), 1);
  if (times.empty())
    return factors;
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  for (size_t i = 0; i < factors.size(); ++i)
    if (referenceMs[i] > 0)
      factors[i] = *middle / referenceMs[i];
  return factors;
}
