//===- DeviceTotals.cpp - Memory and load of every device -----------------===//

#include "DeviceTotals.h"

#include "UnitOperations.h"

#include <algorithm>
#include <limits>

using namespace neuroshard;

/// Does it change what a device takes of its host?
static bool usesHost(const Footprint &change) {
  return (change.hostBytes | change.diskBytes) != 0 || change.hasCaches();
}

DemandTotals::DemandTotals(const SearchContext &context)
    : deviceLoads(static_cast<size_t>(context.deviceCount)) {
  if (const SumEmbedding *embedding = context.model.sumEmbedding())
    size = static_cast<size_t>(embedding->size());
  embeddings.resize(size * deviceLoads.size());
}

void DemandTotals::clear() {
  std::fill(embeddings.begin(), embeddings.end(), 0);
  for (DeviceLoad &load : deviceLoads) {
    ComputeMs compute = load.compute;
    load = {};
    load.compute = compute;
  }
}

DeviceTotals::DeviceTotals(const SearchContext &context, size_t periods)
    : context(&context), devices(static_cast<size_t>(context.deviceCount)),
      hosts(context.problem.topology.hosts.size()), summary(context),
      periods(periods, summary), separated(context) {
  takeBase();
}

void DeviceTotals::takeBase() {
  std::ranges::fill(hosts, HostTotal());
  for (size_t d = 0; d < devices.size(); ++d) {
    auto device = static_cast<int>(d);
    devices[d] = {footprintOf(context->baseOf(device)), 0};
    hosts[hostOf(device)].memoryBytes += context->baseOf(device).hostBytes;
  }
  for (size_t host = 0; host < hosts.size(); ++host)
    hosts[host].memoryBytes += context->hostBaseOf(host);
}

template <int kSign>
void DeviceTotals::change(int device, const ShardFacts &facts) {
  DeviceTotal &total = devices[static_cast<size_t>(device)];
  int64_t hostBytesBefore = context->hostBytesOf(total.footprint);
  if constexpr (kSign > 0)
    total.footprint += facts.footprint;
  else
    total.footprint -= facts.footprint;
  total.shards += kSign * facts.shardCount();
  if (usesHost(facts.footprint)) {
    HostTotal &host = hosts[hostOf(device)];
    host.memoryBytes += context->hostBytesOf(total.footprint) - hostBytesBefore;
    host.diskBytes += kSign * facts.footprint.diskBytes;
  }
  size_t classIndex = context->classIndexOf(device);
  summary.change<kSign>(device, classIndex, facts);
  for (size_t p = 0; p < periods.size(); ++p)
    periods[p].change<kSign>(device, classIndex, facts.periods[p]);
  separated.change(device, facts, kSign);
}

template void DeviceTotals::change<1>(int device, const ShardFacts &facts);
template void DeviceTotals::change<-1>(int device, const ShardFacts &facts);

void DeviceTotals::clear() {
  summary.clear();
  for (DemandTotals &period : periods)
    period.clear();
  separated.clear();
  takeBase();
}

size_t DeviceTotals::hostOf(int device) const {
  return static_cast<size_t>(
      context->problem.topology.devices[static_cast<size_t>(device)].host);
}

bool DeviceTotals::holds(size_t index, int64_t memoryBytes,
                         int64_t diskBytes) const {
  const Host &host = context->problem.topology.hosts[index];
  return hosts[index].memoryBytes + memoryBytes <= host.memoryBytes &&
         (host.disk.bytes == 0 ||
          hosts[index].diskBytes + diskBytes <= host.disk.bytes);
}

bool DeviceTotals::withinHosts() const {
  for (size_t host = 0; host < hosts.size(); ++host)
    if (!holds(host, 0, 0))
      return false;
  return true;
}

int64_t DeviceTotals::hostBytesAdded(int device,
                                     const Footprint &change) const {
  const Footprint &before = memoryOf(device);
  Footprint after = before;
  after += change;
  return context->hostBytesOf(after) - context->hostBytesOf(before);
}

bool DeviceTotals::hostHolds(int device, const Footprint &change) const {
  return !usesHost(change) ||
         holds(hostOf(device), hostBytesAdded(device, change),
               change.diskBytes);
}

bool DeviceTotals::hostsHold(int device, const Footprint &change, int other,
                             const Footprint &otherChange) const {
  size_t host = hostOf(device);
  if (host != hostOf(other))
    return hostHolds(device, change) && hostHolds(other, otherChange);
  return (!usesHost(change) && !usesHost(otherChange)) ||
         holds(host,
               hostBytesAdded(device, change) +
                   hostBytesAdded(other, otherChange),
               change.diskBytes + otherChange.diskBytes);
}

int64_t DeviceTotals::freeHostBytes(int device) const {
  size_t host = hostOf(device);
  return context->problem.topology.hosts[host].memoryBytes -
         hosts[host].memoryBytes;
}

int64_t DeviceTotals::freeDiskBytes(int device) const {
  size_t host = hostOf(device);
  int64_t bytes = context->problem.topology.hosts[host].disk.bytes;
  return bytes == 0 ? std::numeric_limits<int64_t>::max()
                    : bytes - hosts[host].diskBytes;
}

ColumnCuts::ColumnCuts(const SearchContext &context)
    : context(&context), shards(context.problem.tables.size()) {}

int64_t ColumnCuts::permuteBytesOf(int table) const {
  return columnPermuteBytes(context->problem, context->table(table),
                            context->featuresOf(table));
}

void ColumnCuts::change(const ShardFacts &facts, int sign) {
  for (const ShardWork &work : facts.works) {
    if (work.width == work.tableDim)
      continue;
    bytes = permuteBytesAfter(work.table, sign);
    shards[static_cast<size_t>(work.table)] += sign;
  }
}

void ColumnCuts::clear() {
  std::fill(shards.begin(), shards.end(), 0);
  bytes = 0;
}

int64_t ColumnCuts::permuteBytesAfter(int table, int change) const {
  int before = shards[static_cast<size_t>(table)];
  int after = before + change;
  if ((before > 0) == (after > 0))
    return bytes;
  return bytes + (after > 0 ? 1 : -1) * permuteBytesOf(table);
}
