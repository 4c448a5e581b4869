//===- PhaseObserver.h - Is told when phases begin and end ------*- C++ -*-===//

#ifndef NEUROSHARD_RUNTIME_PHASEOBSERVER_H
#define NEUROSHARD_RUNTIME_PHASEOBSERVER_H

#include "neuroshard/Artifact/StepPhases.h"
#include "neuroshard/Runtime/Communicator.h"

namespace neuroshard::runtime {

/// Called by the thread that runs a step, for traces.
class NSRT_SHARED_TYPE PhaseObserver {
public:
  virtual ~PhaseObserver() = default;

  virtual void begin(Phase phase) noexcept = 0;
  virtual void end(Phase phase) noexcept = 0;
};

} // namespace neuroshard::runtime

/// For all devices of the process, to be set before steps run. It lives until
/// they have ended; null: none.
extern "C" void
nsrt_observe_phases(neuroshard::runtime::PhaseObserver *observer);

#endif // NEUROSHARD_RUNTIME_PHASEOBSERVER_H
