//===- WorkOrder.h - Vector clocks of work in streams -----------*- C++ -*-===//
//
// What is done before a piece of work, as the program asks for it: not the
// order in which the emulator happens to run its work.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DRIVER_WORKORDER_H
#define NEUROSHARD_LIB_EMULATOR_DRIVER_WORKORDER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neuroshard::emulator {

/// How much of a lane is done.
struct LanePosition {
  /// Without the waits that other devices' threads add to a stream: when they
  /// do so is up to the host.
  uint64_t sure = 0;
  uint64_t known = 0;
};

/// How much of each lane is done.
class Clock {
public:
  LanePosition operator[](size_t lane) const {
    return lane < positions.size() ? positions[lane] : LanePosition();
  }
  void raise(size_t lane, uint64_t position) {
    raise(lane, {position, position});
  }
  void join(const Clock &other);
  /// What is sure of the other, whose waits by others may not be there yet.
  void joinSure(const Clock &other);
  /// For a wait that another device's thread adds.
  void joinUnsure(const Clock &other);

private:
  void raise(size_t lane, LanePosition position);

  std::vector<LanePosition> positions;
};

/// Work that is done one piece after the other: of a queue, or of a graph as
/// far as it was captured from one queue.
struct Lane {
  Lane();
  size_t number;       ///< in clocks.
  uint64_t length = 0; ///< pieces of work so far.
};

/// The place of a piece of work.
struct WorkOrder {
  std::string stream; ///< "stream 2 of device 0".
  size_t lane = 0;
  Clock clock; ///< of what comes before it, and of itself.

  bool isAfter(const WorkOrder &other) const {
    return clock[other.lane].known >= other.clock[other.lane].known;
  }
  bool isSurelyAfter(const WorkOrder &other) const {
    return clock[other.lane].sure >= other.clock[other.lane].sure;
  }
};

// What the host knows to be done: a thread knows what it has waited for itself,
// and what threads have waited for that used the same device. How threads that
// use other devices tell it cannot be seen. The mutex of the queues must be
// held.

/// Notes that the calling thread, which uses `device`, has waited.
void tellHost(const Clock &clock, int device);
/// Adds what the calling thread knows when it gives work to a device.
void askHost(Clock &clock, int device);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DRIVER_WORKORDER_H
