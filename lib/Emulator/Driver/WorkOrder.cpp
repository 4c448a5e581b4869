//===- WorkOrder.cpp - Vector clocks of work in streams -------------------===//

#include "WorkOrder.h"

#include <algorithm>
#include <atomic>
#include <map>

namespace neuroshard::emulator {

void Clock::raise(size_t lane, LanePosition position) {
  if (lane >= positions.size())
    positions.resize(lane + 1);
  LanePosition &own = positions[lane];
  own = {std::max(own.sure, position.sure),
         std::max(own.known, position.known)};
}

void Clock::join(const Clock &other) {
  for (size_t lane = 0; lane < other.positions.size(); ++lane)
    raise(lane, other.positions[lane]);
}

void Clock::joinSure(const Clock &other) {
  for (size_t lane = 0; lane < other.positions.size(); ++lane)
    raise(lane, other.positions[lane].sure);
}

void Clock::joinUnsure(const Clock &other) {
  for (size_t lane = 0; lane < other.positions.size(); ++lane)
    raise(lane, {0, other.positions[lane].sure});
}

static size_t takeLaneNumber() {
  static std::atomic<size_t> next{0};
  return next++;
}

Lane::Lane() : number(takeLaneNumber()) {}

namespace {
thread_local Clock ofThread;
/// Never destroyed: streams may be used at exit.
std::map<int, Clock> &ofDevices() {
  static auto *clocks = new std::map<int, Clock>();
  return *clocks;
}
} // namespace

void tellHost(const Clock &clock, int device) {
  ofThread.join(clock);
  ofDevices()[device].join(clock);
}

void askHost(Clock &clock, int device) {
  clock.join(ofThread);
  clock.join(ofDevices()[device]);
}

} // namespace neuroshard::emulator
