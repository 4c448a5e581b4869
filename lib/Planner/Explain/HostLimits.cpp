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
  std::vector<Footprint> onDevices(topology.devices.size());
  Footprint least, held;
  for (const UnitPtr &unit : units) {
    if (unit->forcedDevice >= 0)
      onDevices[static_cast<size_t>(unit->forcedDevice)] += unit->footprint;
    if (unit->forcedDevice == Unit::kEverywhere)
      for (Footprint &device : onDevices)
        device += unit->footprint;
    least += footprintOf(leastOf(context, *unit));
    held += unit->footprint;
  }
  std::vector<Footprint> onHosts(topology.hosts.size());
  CacheBytes shared;
  for (size_t i = 0; i < onDevices.size(); ++i) {
    auto host = static_cast<size_t>(topology.devices[i].host);
    onHosts[host].hostBytes += context.hostBytesOf(onDevices[i]) +
                               context.baseOf(static_cast<int>(i)).hostBytes;
    onHosts[host].diskBytes += onDevices[i].diskBytes;
    shared.host += context.sharedBytesOf(onDevices[i]).host;
    least.hostBytes += context.baseOf(static_cast<int>(i)).hostBytes;
  }
  for (size_t host = 0; host < onHosts.size(); ++host) {
    onHosts[host].hostBytes += context.hostBaseOf(host);
    least.hostBytes += context.hostBaseOf(host);
    bool isOfIds = context.hostBaseOf(host) > topology.hosts[host].memoryBytes;
    if (auto error = checkHost(onHosts[host], topology.hosts[host],
                               isOfIds ? "maps of dynamic ids"
                                       : "shards that can only be there",
                               "on host " + std::to_string(host)))
      return error;
  }
  // Those that may be anywhere share what one device has at least.
  least.hostBytes += mostOf(shared, context.sharedBytesOf(held)).host;
  return checkHost(least, sumOf(topology.hosts), "tables below device memory",
                   "on all hosts together");
}
