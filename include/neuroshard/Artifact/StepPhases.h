//===- StepPhases.h - Phases of a step and terms of its cost ----*- C++ -*-===//
//
// A running step is timed by phases; the planner's objective adds up terms. A
// term is the time of its phases.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_STEPPHASES_H
#define NEUROSHARD_ARTIFACT_STEPPHASES_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace neuroshard {

enum class Phase : int32_t {
  Route,
  IdsExchange,
  Fetch, ///< of rows of lower tiers.
  Lookup,
  ResultsExchange,
  Results,
  Gradients,
  GradientsExchange,
  WeightsGradient,
  Sort,
  NormExchange,
  Update,
};

inline constexpr size_t kNumPhases = 12;

struct PhaseNames {
  const char *phase;
  /// A field of a device's cost (DeviceCost, in Planner/Objective.h), as
  /// results of searches name it, without its unit.
  const char *term;
};

inline constexpr std::array<PhaseNames, kNumPhases> kPhases = {{
    {"route", "input"},
    {"ids_exchange", "input"},
    {"fetch", "fetch"},
    {"lookup", "forward"},
    {"results_exchange", "forward_communication"},
    {"results", "forward_communication"},
    {"gradients", "backward_communication"},
    {"gradients_exchange", "backward_communication"},
    {"weights_gradient", "backward"},
    {"sort", "backward"},
    {"norm_exchange", "backward_communication"},
    {"update", "backward"},
}};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_STEPPHASES_H
