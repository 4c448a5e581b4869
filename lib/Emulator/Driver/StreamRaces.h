//===- StreamRaces.h - Conflicts of work without order ----------*- C++ -*-===//
//
// Finds two pieces of work that access the same bytes, at least one of them
// with a write, where no stream, event or wait of the host orders the two. The
// order in which they were run does not matter, as in FastTrack (Flanagan,
// Freund: PLDI 2009).
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DRIVER_STREAMRACES_H
#define NEUROSHARD_LIB_EMULATOR_DRIVER_STREAMRACES_H

#include "Accesses.h"
#include "DeviceMemory.h"
#include "WorkOrder.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace neuroshard::emulator {

class StreamRaces {
public:
  /// Records the accesses of a piece of work, such as "kernel lookup", to
  /// memory of the driver. Returns a text if one conflicts with earlier work.
  std::optional<std::string> record(const std::string &name,
                                    const WorkOrder &order,
                                    const Accesses &accesses);

  /// Forgets the accesses to an array that is freed.
  void forget(const void *array);
  /// Forgets those to all arrays that are freed.
  void forgetFreed();

private:
  struct RecordedWork {
    std::string name;
    WorkOrder order;
  };
  struct RecordedAccess {
    std::shared_ptr<const RecordedWork> work;
    LineAccess access;
  };
  /// Accesses that later ones may conflict with, by address / kLineBytes.
  using Lines = std::unordered_map<uintptr_t, std::vector<RecordedAccess>>;

  static uint64_t findConflict(const RecordedAccess &before,
                               const RecordedAccess &now);
  static std::string describe(const RecordedAccess &before,
                              const RecordedAccess &now, uintptr_t address,
                              const DriverArray &array);
  static void replace(std::vector<RecordedAccess> &line,
                      const RecordedAccess &now);

  std::mutex mutex;
  std::map<uintptr_t, Lines> arrays; ///< by address.
};

/// Those of all queues.
StreamRaces &streamRaces();

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DRIVER_STREAMRACES_H
