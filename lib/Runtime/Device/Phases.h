//===- Phases.h - Wall time and sent bytes of a step's phases ---*- C++ -*-===//
//
// Counted per device and phase since the world was opened.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_PHASES_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_PHASES_H

#include <array>
#include <chrono>
#include <cstdint>

namespace neuroshard::runtime {

enum class Phase : int32_t {
  Route,
  IdsExchange,
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

constexpr std::array<const char *, 11> kPhaseNames = {"route",
                                                      "ids_exchange",
                                                      "lookup",
                                                      "results_exchange",
                                                      "results",
                                                      "gradients",
                                                      "gradients_exchange",
                                                      "weights_gradient",
                                                      "sort",
                                                      "norm_exchange",
                                                      "update"};

struct PhaseFigures {
  std::array<int64_t, kPhaseNames.size()> nanoseconds{};
  std::array<int64_t, kPhaseNames.size()> sentBytes{};
  /// The part of sentBytes that went to other groups.
  std::array<int64_t, kPhaseNames.size()> leftGroupBytes{};
};

/// Adds the time from construction to destruction to a phase.
class PhaseTimer {
public:
  PhaseTimer(PhaseFigures &figures, Phase phase)
      : nanoseconds(figures.nanoseconds[static_cast<size_t>(phase)]),
        start(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() {
    nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now() - start)
                       .count();
  }
  PhaseTimer(const PhaseTimer &) = delete;
  PhaseTimer &operator=(const PhaseTimer &) = delete;

private:
  int64_t &nanoseconds;
  std::chrono::steady_clock::time_point start;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_PHASES_H
