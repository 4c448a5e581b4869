//===- PhaseSpans.cpp - Phases of steps in torch's traces -----------------===//
//
// Each phase is a span of torch.profiler, named by its term and its own name:
// "neuroshard::forward_communication::results_exchange".
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/PhaseObserver.h"

#include <ATen/record_function.h>

#include <memory>
#include <string>
#include <vector>

namespace neuroshard::runtime {
namespace {

std::array<std::string, kNumPhases> nameSpans() {
  std::array<std::string, kNumPhases> names;
  for (size_t i = 0; i < kNumPhases; ++i)
    names[i] = std::string("neuroshard::")
                   .append(kPhases[i].term)
                   .append("::")
                   .append(kPhases[i].phase);
  return names;
}

/// The open spans of this thread, the innermost last; null where nobody
/// profiles.
thread_local std::vector<std::unique_ptr<at::RecordFunction>> openSpans;

class PhaseSpans : public PhaseObserver {
public:
  void begin(Phase phase) noexcept override {
    try {
      std::unique_ptr<at::RecordFunction> span;
      auto callbacks =
          at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
      if (callbacks) {
        span = std::make_unique<at::RecordFunction>(std::move(*callbacks));
        span->before(names[static_cast<size_t>(phase)].c_str());
      }
      openSpans.push_back(std::move(span));
    } catch (const std::exception &) {
      openSpans.emplace_back(); // a trace without the span
    }
  }

  void end(Phase) noexcept override { openSpans.pop_back(); }

private:
  const std::array<std::string, kNumPhases> names = nameSpans();
};

/// Never destroyed: steps may run until the process ends.
[[maybe_unused]] const bool isObserving = [] {
  nsrt_observe_phases(new PhaseSpans);
  return true;
}();

} // namespace
} // namespace neuroshard::runtime
