//===- Phases.h - Wall time and sent bytes of a step's phases ---*- C++ -*-===//
//
// Counted per device and phase since the world was opened.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_PHASES_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_PHASES_H

#include "neuroshard/Artifact/StepPhases.h"
#include "neuroshard/Runtime/PhaseObserver.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace neuroshard::runtime {

struct PhaseFigures {
  std::array<int64_t, kNumPhases> nanoseconds{};
  std::array<int64_t, kNumPhases> sentBytes{};
  /// The part of sentBytes that went to other groups.
  std::array<int64_t, kNumPhases> leftGroupBytes{};
};

/// Null: nobody is told of phases.
inline std::atomic<PhaseObserver *> phaseObserver = nullptr;

/// Adds the time from construction to destruction to a phase.
class PhaseTimer {
public:
  PhaseTimer(PhaseFigures &figures, Phase phase)
      : phase(phase), observer(phaseObserver),
        nanoseconds(figures.nanoseconds[static_cast<size_t>(phase)]) {
    if (observer)
      observer->begin(phase);
    start = std::chrono::steady_clock::now();
  }
  ~PhaseTimer() {
    nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now() - start)
                       .count();
    if (observer)
      observer->end(phase);
  }
  PhaseTimer(const PhaseTimer &) = delete;
  PhaseTimer &operator=(const PhaseTimer &) = delete;

private:
  Phase phase;
  PhaseObserver *observer;
  int64_t &nanoseconds;
  std::chrono::steady_clock::time_point start;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_PHASES_H
