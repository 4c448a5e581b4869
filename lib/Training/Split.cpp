//===- Split.cpp - Training, validation and held-out samples --------------===//

#include "neuroshard/Training/Split.h"
#include "neuroshard/Support/Random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

using namespace neuroshard;

namespace {

/// Samples that measure the same thing, in a random order of such groups.
std::vector<std::vector<size_t>>
groupsInRandomOrder(std::span<const SampleRole> samples, uint64_t seed) {
  std::map<size_t, std::vector<size_t>> byOrigin;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].heldOut)
      continue;
    bool repeats = samples[i].repeatOf >= 0;
    byOrigin[repeats ? static_cast<size_t>(samples[i].repeatOf) : i].push_back(
        i);
  }
  std::vector<std::vector<size_t>> groups;
  for (auto &[origin, members] : byOrigin)
    groups.push_back(std::move(members));
  MersenneTwister(seed).shuffle(groups);
  return groups;
}

} // namespace

Expected<Split> neuroshard::splitSamples(std::span<const SampleRole> samples,
                                         double validationShare, size_t limit,
                                         uint64_t seed) {
  Split split;
  for (size_t i = 0; i < samples.size(); ++i)
    if (samples[i].heldOut)
      split.heldOut.push_back(i);
  size_t usable = samples.size() - split.heldOut.size();
  if (limit > 0)
    usable = std::min(usable, limit);
  size_t wanted = static_cast<size_t>(
      std::max(1.0, std::round(validationShare * static_cast<double>(usable))));
  for (const std::vector<size_t> &group : groupsInRandomOrder(samples, seed)) {
    std::vector<size_t> &side =
        split.validation.size() < wanted ? split.validation : split.training;
    for (size_t sample : group)
      if (split.training.size() + split.validation.size() < usable)
        side.push_back(sample);
  }
  if (split.heldOut.empty())
    return failure("samples", "expected samples that are held out of training, "
                              "got none of " +
                                  std::to_string(samples.size()));
  if (split.training.empty() || split.validation.empty())
    return failure("samples", "expected at least 2 samples to train with, got "
                              "only " +
                                  std::to_string(usable));
  return split;
}
