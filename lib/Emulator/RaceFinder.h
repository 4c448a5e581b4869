//===- RaceFinder.h - Detection of data races -------------------*- C++ -*-===//
//
// Finds two accesses to the same memory in one launch, at least one of them a
// write, that a GPU may perform in either order. Threads of a block are ordered
// by barriers of the block, lanes of a warp also by warp barriers; shuffles
// order nothing, and blocks are not ordered at all. Atomic operations may meet
// each other. What is read as invariant (ld.global.nc) must not be written
// during the launch by anybody.
//
// Of the reads of a place only the latest of two threads are remembered, so
// that a write may go unreported; what is reported is a race.
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

/// Threads that run in step.
inline constexpr uint32_t kWarpSize = 32;

/// For one launch, whose blocks run one after the other.
class RaceFinder {
public:
  /// Threads are those of another block from now on.
  void beginBlock(uint32_t block, uint32_t numThreads);

  /// All lanes of `mask` have met at a warp barrier.
  void meetLanes(uint32_t warp, uint32_t mask);

  /// All threads have met at the barrier of the block.
  void meetBlock() { ++barrier; }

  /// What is wrong with an access of `thread`, to follow "thread ... (lane
  /// ...)"; nothing if it is ordered after all that matter.
  std::optional<std::string> access(uint32_t thread, const void *address,
                                    size_t bytes, nse_access_kind kind);

private:
  static constexpr size_t kCellBytes = 2;
  static constexpr size_t kLineBytes = 64;

  /// Who made an access, and when by its own clock.
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
  /// Clocks of the lanes of a warp, as one lane knows them.
  using Clocks = std::array<uint32_t, kWarpSize>;

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
