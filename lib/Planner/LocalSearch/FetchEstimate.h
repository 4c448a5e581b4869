//===- FetchEstimate.h - Fetches of a board after an edit -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_FETCHESTIMATE_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_FETCHESTIMATE_H

#include "Board.h"
#include "Cost/FetchRates.h"

#include <array>
#include <span>
#include <vector>

namespace neuroshard {

/// Times of the links to host memory and of disks, as edits change the loads of
/// devices.
class FetchEstimate {
public:
  explicit FetchEstimate(const SearchContext &context);

  void measure(std::span<const DeviceLoad> loads);
  /// Follows an edit.
  void apply(const LoadChange &change);

  /// Is anything fetched? If not, all times are 0.
  bool isUsed() const { return used; }
  double hostMemoryMs(size_t device, const DeviceLoad &load) const {
    return used ? rates.hostMemoryMs(device, load.fetch) : 0;
  }
  double diskMs(size_t host) const { return rates.diskMs(host, ofHosts[host]); }
  size_t hostCount() const { return ofHosts.size(); }

  /// The one or two hosts of the devices that an edit changes, and how long
  /// their disks take afterwards.
  struct Disks {
    size_t count = 0;
    std::array<size_t, 2> hosts = {};
    std::array<double, 2> ms = {};
  };
  Disks disksAfter(const LoadChange &change) const;

private:
  struct Hosts {
    size_t count = 0;
    std::array<size_t, 2> hosts = {};
    std::array<FetchLoad, 2> loads = {};
  };
  Hosts hostsAfter(const LoadChange &change) const;

  FetchRates rates;
  bool used = false;
  std::vector<FetchLoad> ofDevices, ofHosts;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_FETCHESTIMATE_H
