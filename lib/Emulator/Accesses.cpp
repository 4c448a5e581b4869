//===- Accesses.cpp - Bytes that a piece of work accesses -----------------===//

#include "Accesses.h"

#include <algorithm>

namespace neuroshard::emulator {

LineAccess &Accesses::lineAt(uintptr_t number) {
  if (!latest || latest->first != number)
    latest = &*lines.try_emplace(number).first;
  return latest->second;
}

void Accesses::add(const void *address, size_t bytes, nse_access_kind kind) {
  auto at = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t end = at + bytes; at < end;) {
    LineAccess &line = lineAt(at / kLineBytes);
    size_t first = at % kLineBytes;
    size_t count = std::min<size_t>(end - at, kLineBytes - first);
    uint64_t mask = ~uint64_t{0} >> (kLineBytes - count) << first;
    (kind == NSE_WRITE    ? line.writes
     : kind == NSE_ATOMIC ? line.atomics
                          : line.reads) |= mask;
    at += count;
  }
}

} // namespace neuroshard::emulator
