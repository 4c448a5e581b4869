//===- HostLimits.cpp - Lower tiers that no host has room for -------------===//

#include "HostLimits.h"

#include "Units/MemoryLowerBound.h"
#include "Units/UnitOperations.h"

#include <algorithm>
#include <limits>

using namespace neuroshard;

namespace {

PlanningError hostError(Limit limit, const std::string &what, int64_t bytes,
                        int64_t room, const std::string &where) {
  return {limit,
          what + " need " + formatBytes(bytes) +
              (limit == Limit::Disk ? " of disk " : " of host memory ") +
              where + "; there are " + formatBytes(room),
          {},
          "move shards to device memory, to another tier or to other hosts"};
}

std::optional<PlanningError> checkHost(const Footprint &used, const Host &host,
                                       const std::string &what,
                                       const std::string &where) {
  if (used.hostBytes > host.memoryBytes)
    return hostError(Limit::HostMemory, what, used.hostBytes, host.memoryBytes,
                     where);
  if (host.disk.bytes > 0 && used.diskBytes > host.disk.bytes)
    return hostError(Limit::Disk, what, used.diskBytes, host.disk.bytes, where);
  return std::nullopt;
}

/// Of sizes that are not negative; the largest number if it is too small.
int64_t boundedSum(int64_t a, int64_t b) {
  return b > std::numeric_limits<int64_t>::max() - a
             ? std::numeric_limits<int64_t>::max()
             : a + b;
}

/// What all hosts have.
Host sumOf(const std::vector<Host> &hosts) {
  Host sum;
  for (const Host &host : hosts) {
    sum.memoryBytes = boundedSum(sum.memoryBytes, host.memoryBytes);
    sum.disk.bytes = boundedSum(sum.disk.bytes, host.disk.bytes);
  }
  bool isLimited = std::ranges::all_of(
      hosts, [](const Host &host) { return host.disk.bytes > 0; });
  if (!isLimited)
    sum.disk.bytes = 0;
  return sum;
}

} // namespace

std::optional<PlanningError>
neuroshard::checkHosts(const SearchContext &context,
                       const std::vector<UnitPtr> &units) {
  const Topology &topology = context.problem.topology;
  std::vector<Footprint> used(topology.hosts.size());
  Footprint all;
  for (const UnitPtr &unit : units) {
    auto add = [&](int device) {
      int host = topology.devices[static_cast<size_t>(device)].host;
      used[static_cast<size_t>(host)] += unit->footprint;
    };
    bool isEverywhere = unit->forcedDevice == Unit::kEverywhere;
    if (unit->forcedDevice >= 0)
      add(unit->forcedDevice);
    for (int device = 0; isEverywhere && device < context.deviceCount; ++device)
      add(device);
    all += footprintOf(leastOf(context, *unit));
  }
  for (size_t host = 0; host < used.size(); ++host)
    if (auto error = checkHost(used[host], topology.hosts[host],
                               "shards that can only be there",
                               "on host " + std::to_string(host)))
      return error;
  return checkHost(all, sumOf(topology.hosts), "tables below device memory",
                   "on all hosts together");
}
