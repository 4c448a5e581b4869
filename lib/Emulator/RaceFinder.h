//===- RaceFinder.h - Detection of data races -------------------*- C++ -*-===//
//
// Finds two accesses to the same memory in one launch, at least one of them a
// write, that a GPU may perform in either order. Barriers of the block order
// its threads, warp barriers the lanes of a warp; shuffles order nothing, and
// blocks are not ordered. Two atomic operations do not race. Memory that is
// read as invariant (ld.global.nc) must not be written in the same launch.
//
// Reports races only, but not all: of the reads of a place it remembers the
// latest of two threads.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_RACEFINDER_H
#define NEUROSHARD_LIB_EMULATOR_RACEFINDER_H

#include "neuroshard/Emulator/EmulatorABI.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace neuroshard::emulator {

/// Finds the races of one launch, whose blocks run one after the other.
class RaceFinder {
public:
  /// Later calls are about the threads of this block.
  void beginBlock(uint32_t block, uint32_t numThreads);

  /// Notes that all lanes of `mask` have met at a warp barrier.
  void meetLanes(uint32_t warp, uint32_t mask);

  /// Notes that all threads have met at the barrier of the block.
  void meetBlock() { ++barrier; }

  /// Records an access of `thread`. Returns a text to follow "thread ... (lane
  /// ...)" if it races with an earlier one.
  std::optional<std::string> access(uint32_t thread, const void *address,
                                    size_t bytes, nse_access_kind kind);

private:
  static constexpr size_t kCellBytes = 1;
  static constexpr size_t kLineBytes = 64;

  /// The thread that made an access, and the time by its own clock.
  struct Stamp {
    uint32_t block, barrier, clock;
    uint16_t thread;
    bool isAtomic;
    bool isValid = false;
  };
  struct Cell {
    Stamp write, read, otherRead, invariantRead;
  };
  using Line = std::array<Cell, kLineBytes / kCellBytes>;
  /// The clocks of all lanes of a warp that one lane knows.
  using Clocks = std::array<uint32_t, NSE_WARP>;

  bool isOrdered(const Stamp &before, uint32_t thread) const;
  const Stamp *findConflict(const Cell &cell, uint32_t thread,
                            nse_access_kind kind) const;
  void record(Cell &cell, const Stamp &stamp, nse_access_kind kind);
  std::string describe(const Stamp &before, const Cell &cell,
                       const void *address, nse_access_kind kind) const;

  uint32_t block = 0, barrier = 0;
  std::vector<Clocks> clocks; // by thread
  std::unordered_map<uintptr_t, Line> lines;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_RACEFINDER_H
