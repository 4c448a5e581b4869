//===- RaceFinder.cpp - Detection of data races ---------------------------===//
//
// Vector clocks as in FastTrack (Flanagan, Freund: PLDI 2009), reduced to what
// a block needs: the number of the latest barrier of the block, and a clock per
// lane within a warp.
//
//===----------------------------------------------------------------------===//

#include "RaceFinder.h"
#include "DeviceMemory.h"

#include <algorithm>

namespace neuroshard::emulator {

void RaceFinder::beginBlock(uint32_t index, uint32_t numThreads) {
  block = index;
  barrier = 0;
  clocks.assign(numThreads, {});
  for (uint32_t i = 0; i < numThreads; ++i)
    clocks[i][i % NSE_WARP] = 1;
}

void RaceFinder::meetLanes(uint32_t warp, uint32_t mask) {
  Clocks joined = {};
  for (uint32_t left = mask; left; left &= left - 1) {
    const Clocks &lane = clocks[warp * NSE_WARP + __builtin_ctz(left)];
    for (uint32_t i = 0; i < NSE_WARP; ++i)
      joined[i] = std::max(joined[i], lane[i]);
  }
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t lane = __builtin_ctz(left);
    Clocks &own = clocks[warp * NSE_WARP + lane];
    own = joined;
    ++own[lane];
  }
}

/// Whether program order or a barrier puts the access before what `thread` does
/// now.
bool RaceFinder::isOrdered(const Stamp &before, uint32_t thread) const {
  if (before.block != block)
    return false;
  if (before.thread == thread || before.barrier < barrier)
    return true;
  return before.thread / NSE_WARP == thread / NSE_WARP &&
         clocks[thread][before.thread % NSE_WARP] >= before.clock;
}

const RaceFinder::Stamp *RaceFinder::findConflict(const Cell &cell,
                                                  uint32_t thread,
                                                  nse_access_kind kind) const {
  auto clashes = [&](const Stamp &before) {
    return before.isValid && !isOrdered(before, thread);
  };
  if (kind == NSE_READ_INVARIANT)
    return cell.write.isValid ? &cell.write : nullptr;
  if (clashes(cell.write) && !(cell.write.isAtomic && kind == NSE_ATOMIC))
    return &cell.write;
  if (kind == NSE_READ)
    return nullptr;
  if (cell.invariantRead.isValid)
    return &cell.invariantRead;
  for (const Stamp *read : {&cell.read, &cell.otherRead})
    if (clashes(*read))
      return read;
  return nullptr;
}

void RaceFinder::record(Cell &cell, const Stamp &stamp, nse_access_kind kind) {
  if (kind == NSE_READ_INVARIANT) {
    cell.invariantRead = stamp;
  } else if (kind == NSE_READ) {
    if (cell.read.block != stamp.block || cell.read.thread != stamp.thread)
      cell.otherRead = cell.read;
    cell.read = stamp;
  } else {
    cell.write = stamp;
  }
}

std::string RaceFinder::describe(const Stamp &before, const Cell &cell,
                                 const void *address,
                                 nse_access_kind kind) const {
  constexpr const char *kVerbs[] = {" reads ", " reads as invariant ",
                                    " writes ", " changes atomically "};
  std::string text = kVerbs[kind];
  text.append(describeAddress(address)).append(", which thread ");
  text.append(std::to_string(before.thread)).append(" of block ");
  text.append(std::to_string(before.block));
  text.append(&before == &cell.invariantRead ? " has read as invariant"
              : &before != &cell.write       ? " has read"
              : before.isAtomic              ? " has changed atomically"
                                             : " has written");
  if (kind == NSE_READ_INVARIANT || &before == &cell.invariantRead)
    return text.append(" in the same launch");
  return text.append(", and nothing orders the two");
}

std::optional<std::string> RaceFinder::access(uint32_t thread,
                                              const void *address, size_t bytes,
                                              nse_access_kind kind) {
  Stamp stamp{block,
              barrier,
              clocks[thread][thread % NSE_WARP],
              static_cast<uint16_t>(thread),
              kind == NSE_ATOMIC,
              true};
  auto first = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t at = first / kCellBytes * kCellBytes; at < first + bytes;
       at += kCellBytes) {
    Cell &cell = lines[at / kLineBytes][at % kLineBytes / kCellBytes];
    if (const Stamp *before = findConflict(cell, thread, kind))
      return describe(*before, cell, reinterpret_cast<void *>(at), kind);
    record(cell, stamp, kind);
  }
  return std::nullopt;
}

} // namespace neuroshard::emulator
