//===- IdMapMemory.cpp - Host memory of the maps of dynamic ids -----------===//

#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <bit>

using namespace neuroshard;

/// A map of so many ids, as docs/dynamic-ids.md says: of each id an entry of 48
/// bytes, its places of 16 in a hash table, and a bit for each row, over which
/// others say where some are free.
static int64_t mapBytes(int64_t ids) {
  constexpr int64_t kEntryBytes = 48, kPlaceBytes = 16, kWordBits = 64;
  auto places = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(ids + ids / 2 + 1)));
  int64_t words = 0, level = ids;
  do {
    level = std::max<int64_t>(1, ceilDivide(level, kWordBits));
    words += level;
  } while (level > 1);
  return kEntryBytes * ids + kPlaceBytes * places + kWordBits / 8 * words;
}

std::vector<int64_t> neuroshard::idMapMemory(const ShardingProblem &problem) {
  const Topology &topology = problem.topology;
  std::vector<int64_t> bytes(topology.hosts.size());
  auto devices = static_cast<int64_t>(topology.devices.size());
  for (const Table &table : problem.tables) {
    if (!table.dynamicIds)
      continue;
    // The last row is shared by all ids that have none.
    auto shareOf = [&](int64_t all, int64_t device) {
      return all * (device + 1) / devices - all * device / devices;
    };
    for (int64_t device = 0; device < devices; ++device)
      bytes[static_cast<size_t>(
          topology.devices[static_cast<size_t>(device)].host)] +=
          mapBytes(shareOf(table.rows - 1, device)) +
          mapBytes(shareOf(table.idCandidates, device));
  }
  return bytes;
}
