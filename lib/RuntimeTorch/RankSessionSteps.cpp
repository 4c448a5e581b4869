//===- RankSessionSteps.cpp - Steps of a session, by number ---------------===//

#include "RankSession.h"

#include <c10/util/Exception.h>

#include <utility>

namespace neuroshard::runtime {

/// The first handles are those of the ids of each input, others those of
/// partial results.
void RankSession::releaseHandles(Step &step) noexcept {
  size_t handles = 0;
  size_t numInputs = manifest.exchanges.size();
  for (size_t i = 0; i < step.state.size(); ++i) {
    if (!step.state.isHandle(i))
      continue;
    void *handle = step.state.handle(i);
    if (handles++ < numInputs)
      nsrt_routed_release(ownDevice, static_cast<nsrt_routed *>(handle));
    else
      nsrt_partials_release(ownDevice, static_cast<nsrt_partials *>(handle));
  }
}

void RankSession::keepStep(int64_t number, Step step) {
  std::lock_guard lock(mutex);
  steps.emplace(number, std::move(step));
}

std::optional<RankSession::Step> RankSession::takeOwed(int64_t end) {
  std::lock_guard lock(mutex);
  for (auto it = steps.begin(); it != steps.end() && it->first < end; ++it)
    if (!it->second.lookedUp) {
      owed = it->first;
      droppedOwed = false;
      Step step = std::move(it->second);
      steps.erase(it);
      return step;
    }
  return std::nullopt;
}

int64_t RankSession::endOfDropped() {
  std::lock_guard lock(mutex);
  int64_t end = 0;
  for (const auto &[number, step] : steps)
    if (step.dropped && !step.lookedUp)
      end = number + 1;
  return end;
}

RankSession::Step RankSession::takeStep(int64_t number, const char *wanted) {
  std::lock_guard lock(mutex);
  auto found = steps.find(number);
  TORCH_CHECK_VALUE(found != steps.end(), "step ", number,
                    " is over: ", wanted);
  Step step = std::move(found->second);
  steps.erase(found);
  return step;
}

/// Other ranks may need this one as a relay of the step, so that releasing it
/// communicates: now, if no function runs, else before the next start.
void RankSession::release(int64_t number) noexcept {
  markDropped(number);
  if (manifest.numDevices == 1 || running.isHeldHere())
    return;
  std::unique_lock one(running, std::try_to_lock);
  if (!one)
    return;
  try {
    placement.followStream(ownDevice);
    releaseDropped();
  } catch (const std::exception &) {
    // The next start releases it, or tells what is wrong with the device.
  }
}

void RankSession::markDropped(int64_t number) noexcept {
  std::lock_guard lock(mutex);
  auto found = steps.find(number);
  if (found == steps.end()) {
    droppedOwed |= number == owed;
    return;
  }
  Step &step = found->second;
  step.dropped = true;
  lostUpdate |= step.sent;
  if (manifest.numDevices > 1)
    return;
  releaseHandles(step);
  steps.erase(found);
}

std::vector<int64_t> RankSession::openSteps() {
  std::lock_guard lock(mutex);
  std::vector<int64_t> open;
  for (const auto &[number, step] : steps)
    if (!step.dropped || !step.lookedUp)
      open.push_back(number);
  return open;
}

void RankSession::releaseDropped() noexcept {
  std::vector<Step> over;
  {
    std::lock_guard lock(mutex);
    for (auto it = steps.begin(); it != steps.end();) {
      // Other ranks may wait for the results of those not looked up.
      bool isOver = it->second.dropped && it->second.lookedUp;
      if (isOver)
        over.push_back(std::move(it->second));
      it = isOver ? steps.erase(it) : std::next(it);
    }
  }
  for (Step &step : over)
    releaseHandles(step);
}

} // namespace neuroshard::runtime
