//===- PhaseRecord.h - Order of a step's phases -----------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_RUNTIME_PHASERECORD_H
#define NEUROSHARD_TEST_RUNTIME_PHASERECORD_H

#include "neuroshard/Runtime/PhaseObserver.h"

#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace neuroshard::test {

/// The phases that each thread, which is a rank, begins.
class PhaseRecord : public runtime::PhaseObserver {
public:
  PhaseRecord() { nsrt_observe_phases(this); }
  ~PhaseRecord() override { nsrt_observe_phases(nullptr); }

  void begin(Phase phase) noexcept override {
    std::scoped_lock lock(mutex);
    ofThreads[std::this_thread::get_id()].push_back(phase);
  }
  void end(Phase) noexcept override {}

  std::map<std::thread::id, std::vector<Phase>> ofThreads;

private:
  std::mutex mutex;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_PHASERECORD_H
