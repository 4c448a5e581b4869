//===- StreamRaces.cpp - Conflicts of work without order ------------------===//
//
// Remembers a read until a later one that is ordered after it, or a write: work
// that races with the former then races with the latter, too.
//
//===----------------------------------------------------------------------===//

#include "StreamRaces.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace neuroshard::emulator {

StreamRaces &streamRaces() {
  static auto *races = new StreamRaces(); // streams may be used at exit
  return *races;
}

namespace {

enum class Tense { Present, Perfect };
/// How an access uses a byte.
const char *describeVerb(const LineAccess &access, uint64_t bit, Tense tense) {
  bool isNow = tense == Tense::Present;
  if (access.writes & bit)
    return isNow ? " writes " : " has written";
  if (access.atomics & bit)
    return isNow ? " changes atomically " : " has changed atomically";
  return isNow ? " reads " : " has read";
}

std::string describeByte(uintptr_t address, const DriverArray &array) {
  char text[32];
  std::snprintf(text, sizeof(text), "address %#zx, ", address);
  return std::string(text)
      .append("byte ")
      .append(std::to_string(address - array.begin))
      .append(" of ")
      .append(std::to_string(array.bytes))
      .append(array.isPinned ? " bytes of pinned host memory"
                             : " bytes of device memory");
}

} // namespace

std::string StreamRaces::describe(const RecordedAccess &before,
                                  const RecordedAccess &now, uintptr_t address,
                                  const DriverArray &array) {
  uint64_t bit = uint64_t{1} << address % Accesses::kLineBytes;
  return std::string(now.work->name)
      .append(describeVerb(now.access, bit, Tense::Present))
      .append(describeByte(address, array))
      .append(", which ")
      .append(before.work->name)
      .append(describeVerb(before.access, bit, Tense::Perfect))
      .append(", and nothing orders the two");
}

/// The bytes at which an access races with an earlier one. What it overwrites
/// must be done by then; what it reads, surely.
uint64_t StreamRaces::findConflict(const RecordedAccess &before,
                                   const RecordedAccess &now) {
  const WorkOrder &order = now.work->order;
  if (!order.isAfter(before.work->order))
    return before.access.conflicts(now.access);
  if (!order.isSurelyAfter(before.work->order))
    return now.access.reads & (before.access.writes | before.access.atomics);
  return 0;
}

/// Adds an access, and drops from those before it what it replaces.
void StreamRaces::replace(std::vector<RecordedAccess> &line,
                          const RecordedAccess &now) {
  for (RecordedAccess &one : line) {
    bool isOrdered = now.work->order.isSurelyAfter(one.work->order);
    uint64_t written = now.access.writes;
    one.access.writes &= ~written;
    one.access.reads &= ~(written | (isOrdered ? now.access.reads : 0));
    one.access.atomics &= ~(written | (isOrdered ? now.access.atomics : 0));
  }
  std::erase_if(line,
                [](const RecordedAccess &one) { return !one.access.all(); });
  line.push_back(now);
}

std::optional<std::string> StreamRaces::record(const std::string &name,
                                               const WorkOrder &order,
                                               const Accesses &accesses) {
  auto work = std::make_shared<const RecordedWork>(RecordedWork{
      std::string(name).append(" on ").append(order.stream), order});
  std::vector<std::pair<uintptr_t, LineAccess>> sorted(
      accesses.getLines().begin(), accesses.getLines().end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  std::lock_guard lock(mutex);
  std::optional<DriverArray> array;
  Lines *lines = nullptr;
  for (const auto &[number, access] : sorted) {
    uintptr_t base = number * Accesses::kLineBytes;
    uintptr_t first = base + __builtin_ctzll(access.all());
    if (!array || first - array->begin >= array->bytes) {
      array = findDriverArray(reinterpret_cast<void *>(first));
      if (!array)
        continue;
      lines = &arrays[array->begin];
    }
    std::vector<RecordedAccess> &line = (*lines)[number];
    RecordedAccess now = {work, access};
    for (const RecordedAccess &before : line)
      if (uint64_t bytes = findConflict(before, now))
        return describe(before, now, base + __builtin_ctzll(bytes), *array);
    replace(line, now);
  }
  return std::nullopt;
}

void StreamRaces::forget(const void *array) {
  std::lock_guard lock(mutex);
  arrays.erase(reinterpret_cast<uintptr_t>(array));
}

void StreamRaces::forgetFreed() {
  std::lock_guard lock(mutex);
  std::erase_if(arrays, [](const auto &entry) {
    return !isDriverMemory(reinterpret_cast<void *>(entry.first), 1);
  });
}

} // namespace neuroshard::emulator
