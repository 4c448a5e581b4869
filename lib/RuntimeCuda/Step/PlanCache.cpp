//===- PlanCache.cpp - Plans of earlier steps -----------------------------===//

#include "PlanCache.h"

#include <cstring>

namespace neuroshard::cuda {
namespace {

/// Enough for inputs that rotate among a few buffers.
constexpr size_t kKeptPlans = 8;

bool sameParts(std::span<const Part> a, std::span<const Part> b) {
  static_assert(sizeof(Part) == 96, "parts are compared as bytes");
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

} // namespace

StepPlan *PlanCache::find(std::span<const Part> parts, bool training) {
  for (const auto &plan : plans)
    if (!plan->captured && plan->training == training &&
        sameParts(plan->parts, parts)) {
      plan->lastUse = ++uses;
      return plan.get();
    }
  return nullptr;
}

StepPlan &PlanCache::take(bool capturing) {
  StepPlan *oldest = nullptr;
  size_t eager = 0;
  for (const auto &plan : plans) {
    if (plan->captured)
      continue;
    ++eager;
    if (!oldest || plan->lastUse < oldest->lastUse)
      oldest = plan.get();
  }
  if (capturing || eager < kKeptPlans) {
    plans.push_back(std::make_unique<StepPlan>(gpu));
    oldest = plans.back().get();
    oldest->badIdWord = plans.size() - 1;
  }
  oldest->captured = capturing;
  oldest->lastUse = ++uses;
  return *oldest;
}

void PlanCache::drop(StepPlan &plan) {
  // Keeps the memory for the next plan.
  plan.parts.clear();
  plan.step = {};
  plan.training = false;
  plan.lastUse = 0;
  plan.captured = false;
}

} // namespace neuroshard::cuda
