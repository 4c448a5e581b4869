//===- MemoryTerms.h - Bytes by kind, and as text ---------------*- C++ -*-===//
///
/// \file
/// The terms, their formulas and sources are in docs/memory.md.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_MEMORYTERMS_H
#define NEUROSHARD_PLANNER_MEMORYTERMS_H

#include <cstdint>
#include <string>

namespace neuroshard {

/// Bytes by kind. A sum over the shards of a device plus deviceBaseMemory() is
/// the device's memory.
struct MemoryTerms {
  int64_t weightsBytes = 0;
  int64_t optimizerStateBytes = 0;
  int64_t idsBytes = 0;
  /// Alive in the forward phase / in the backward phase. Gradients that wait
  /// for the update of a later backward are in both.
  int64_t forwardBytes = 0;
  int64_t backwardBytes = 0;
  int64_t communicatorBytes = 0;
  int64_t denseReserveBytes = 0;
  int64_t fragmentationReserveBytes = 0;
  /// Of the host: weights and states in tier "dram", and on disk in tier "ssd".
  int64_t hostBytes = 0;
  int64_t diskBytes = 0;

  /// Static terms + the larger phase + reserves; what the host has not
  /// included.
  int64_t peakBytes() const;
  MemoryTerms &operator+=(const MemoryTerms &other);
  MemoryTerms &operator-=(const MemoryTerms &other);
  bool operator==(const MemoryTerms &) const = default;
};

/// "12.3 GiB", "4.0 MiB": for messages.
std::string formatBytes(int64_t bytes);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_MEMORYTERMS_H
