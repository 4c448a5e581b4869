//===- PlanCache.cpp - Plans of earlier steps -----------------------------===//

#include "PlanCache.h"
#include "neuroshard/Artifact/RelayPieces.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::cuda {
namespace {

/// Of the same lookups: enough for inputs that rotate among a few buffers, and
/// have a plan for each piece of what goes by relay (RelayPieces.h).
constexpr size_t kKeptPlans = 8 * static_cast<size_t>(kMostRelayPieces);
/// Of all. A step has a few lists of lookups for each of its inputs.
constexpr size_t kMostPlans = 512;

bool sameParts(std::span<const Part> a, std::span<const Part> b) {
  static_assert(sizeof(Part) == 120, "parts are compared as bytes");
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

bool sameLookups(std::span<const Part> a, std::span<const Part> b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const Part &x, const Part &y) { return x.lookup == y.lookup; });
}

} // namespace

StepPlan *PlanCache::find(std::span<const Part> parts, StepKind kind) {
  for (const auto &plan : plans)
    if (!plan->captured && plan->kind == kind &&
        sameParts(plan->parts, parts)) {
      plan->lastUse = ++uses;
      return plan.get();
    }
  return nullptr;
}

/// Among the plans that have the lookups of `parts`, or among all if it is
/// empty; null if there are fewer than `kept`.
StepPlan *PlanCache::leastRecent(std::span<const Part> parts, size_t kept) {
  StepPlan *oldest = nullptr;
  size_t count = 0;
  for (const auto &plan : plans) {
    if (plan->captured || (!parts.empty() && !sameLookups(plan->parts, parts)))
      continue;
    ++count;
    if (!oldest || plan->lastUse < oldest->lastUse)
      oldest = plan.get();
  }
  return count < kept ? nullptr : oldest;
}

StepPlan &PlanCache::take(std::span<const Part> parts, bool capturing) {
  StepPlan *plan = nullptr;
  if (!capturing)
    plan = leastRecent(parts, kKeptPlans);
  if (!capturing && !plan)
    plan = leastRecent({}, kMostPlans);
  if (!plan) {
    plans.push_back(std::make_unique<StepPlan>(gpu));
    plan = plans.back().get();
    plan->badIdWord = plans.size() - 1;
  }
  plan->captured = capturing;
  plan->lastUse = ++uses;
  return *plan;
}

void PlanCache::drop(StepPlan &plan) {
  // Keeps the memory for the next plan.
  plan.parts.clear();
  plan.step = {};
  plan.kind = StepKind::Inference;
  plan.lastUse = 0;
  plan.captured = false;
}

} // namespace neuroshard::cuda
