//===- FetchEstimate.cpp - Fetches of a board after an edit ---------------===//

#include "FetchEstimate.h"

#include <algorithm>

using namespace neuroshard;

FetchEstimate::FetchEstimate(const SearchContext &context)
    : rates(context.problem.topology, context.model.devicesEach()) {}

void FetchEstimate::measure(std::span<const DeviceLoad> loads) {
  used = std::ranges::any_of(loads, fetches);
  if (!used)
    return;
  ofDevices.clear();
  ofHosts.assign(rates.hostCount(), {});
  for (size_t i = 0; i < loads.size(); ++i) {
    ofDevices.push_back(loads[i].fetch);
    addFetches(ofHosts[rates.hostOf(i)], loads[i].fetch, 1);
  }
}

FetchEstimate::Hosts FetchEstimate::hostsAfter(const LoadChange &change) const {
  Hosts after;
  auto replace = [&](int device, const DeviceLoad &load) {
    auto index = static_cast<size_t>(device);
    size_t host = rates.hostOf(index);
    size_t place = after.count > 0 && after.hosts[0] == host ? 0 : after.count;
    if (place == after.count) {
      after.hosts[place] = host;
      after.loads[place] = ofHosts[host];
      ++after.count;
    }
    addFetches(after.loads[place], ofDevices[index], -1);
    addFetches(after.loads[place], load.fetch, 1);
  };
  replace(change.device, change.load);
  if (change.target != change.device)
    replace(change.target, change.targetLoad);
  return after;
}

FetchEstimate::Disks FetchEstimate::disksAfter(const LoadChange &change) const {
  Hosts after = hostsAfter(change);
  Disks disks{after.count, after.hosts, {}};
  for (size_t i = 0; i < after.count; ++i)
    disks.ms[i] = rates.diskMs(after.hosts[i], after.loads[i]);
  return disks;
}

void FetchEstimate::apply(const LoadChange &change) {
  if (!used)
    return;
  Hosts after = hostsAfter(change);
  for (size_t i = 0; i < after.count; ++i)
    ofHosts[after.hosts[i]] = after.loads[i];
  ofDevices[static_cast<size_t>(change.device)] = change.load.fetch;
  ofDevices[static_cast<size_t>(change.target)] = change.targetLoad.fetch;
}
