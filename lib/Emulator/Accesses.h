//===- Accesses.h - Bytes that a piece of work accesses ---------*- C++ -*-===//
//
// The accesses of a kernel, a copy or a fill, combined: for each line of 64
// bytes, which of them are read, written and changed atomically.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_ACCESSES_H
#define NEUROSHARD_LIB_EMULATOR_ACCESSES_H

#include "neuroshard/Emulator/EmulatorABI.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace neuroshard::emulator {

/// How the bytes of a line are accessed: bit i stands for byte i.
struct LineAccess {
  uint64_t reads = 0, writes = 0, atomics = 0;

  /// The bytes that both access, at least one of them with a write. Two atomic
  /// changes do not conflict.
  uint64_t conflicts(const LineAccess &other) const {
    return (writes & other.all()) | (all() & other.writes) |
           (atomics & other.reads) | (reads & other.atomics);
  }
  uint64_t all() const { return reads | writes | atomics; }
};

class Accesses {
public:
  static constexpr size_t kLineBytes = 64;
  /// By address / kLineBytes.
  using Lines = std::unordered_map<uintptr_t, LineAccess>;

  void add(const void *address, size_t bytes, nse_access_kind kind);
  const Lines &getLines() const { return lines; }

private:
  LineAccess &lineAt(uintptr_t number);

  Lines lines;
  /// The line of the latest access, which is often that of the next.
  Lines::value_type *latest = nullptr;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_ACCESSES_H
