//===- DeviceTotals.cpp - Memory and load of every device -----------------===//

#include "DeviceTotals.h"

#include "UnitOperations.h"

#include <algorithm>

using namespace neuroshard;

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
      summary(context), periods(periods, summary), separated(context) {
  for (int device = 0; device < context.deviceCount; ++device)
    devices[static_cast<size_t>(device)].footprint =
        footprintOf(context.baseOf(device));
}

template <int kSign>
void DeviceTotals::change(int device, const ShardFacts &facts) {
  DeviceTotal &total = devices[static_cast<size_t>(device)];
  if constexpr (kSign > 0)
    total.footprint += facts.footprint;
  else
    total.footprint -= facts.footprint;
  total.shards += kSign * facts.shardCount();
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
  for (size_t d = 0; d < devices.size(); ++d)
    devices[d] = {footprintOf(context->baseOf(static_cast<int>(d))), 0};
}

bool DeviceTotals::withinHostMemory() const {
  const Topology &topology = context->problem.topology;
  std::vector<int64_t> used(topology.hosts.size());
  for (size_t d = 0; d < devices.size(); ++d)
    used[static_cast<size_t>(topology.devices[d].host)] +=
        devices[d].footprint.hostBytes;
  for (size_t host = 0; host < used.size(); ++host)
    if (used[host] > topology.hosts[host].memoryBytes)
      return false;
  return true;
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
