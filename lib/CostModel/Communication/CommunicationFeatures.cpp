//===- CommunicationFeatures.cpp - Features of an exchange ----------------===//

#include "neuroshard/CostModel/CommunicationFeatures.h"

#include "ClosedForm/LinkLevels.h"
#include "ClosedForm/RooflineCommunication.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace neuroshard;

namespace {

constexpr std::array<std::string_view, kDeviceFeatureCount> kDeviceNames = {
    "log_bytes_out",         "log_bytes_in",
    "out_share_of_max",      "in_share_of_max",
    "log_out_to_mean",       "log_in_to_mean",
    "log_wait_ms",           "log_wait_to_closed_form",
    "started_share",         "log_closed_form_ms",
    "log_innermost_link_ms", "log_second_link_ms",
    "log_third_link_ms",
};

constexpr std::array<std::string_view, kExchangeFeatureCount> kExchangeNames = {
    "log_devices",
    "levels",
    "innermost_present",
    "innermost_log_latency_us",
    "innermost_log_gbps",
    "innermost_log_group",
    "second_present",
    "second_log_latency_us",
    "second_log_gbps",
    "second_log_group",
    "third_present",
    "third_log_latency_us",
    "third_log_gbps",
    "third_log_group",
    "input",
    "forward",
    "backward",
    "log_total_bytes",
    "log_largest_skew_ms",
};

/// Times below a microsecond count as one, so that their logarithms are finite.
constexpr double kLeastMs = 1e-3;

double logMs(double ms) { return std::log(std::max(ms, kLeastMs)); }

/// Independent of the order of the devices: sums of whole numbers are exact.
double sumOfBytes(std::span<const double> bytes) {
  double sum = 0;
  for (double value : bytes)
    sum += std::nearbyint(value);
  return sum;
}

double largest(std::span<const double> values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// Sum and maximum over the devices of the bytes in one direction.
struct Side {
  explicit Side(std::span<const double> bytes)
      : bytes(bytes), total(sumOfBytes(bytes)), most(largest(bytes)) {}

  double logBytes(size_t device) const { return std::log1p(bytes[device]); }
  double shareOfMost(size_t device) const {
    return most > 0 ? bytes[device] / most : 0;
  }
  double logToMean(size_t device) const {
    double mean = total / static_cast<double>(bytes.size());
    return mean > 0 ? std::log1p(bytes[device] / mean) : 0;
  }

  std::span<const double> bytes;
  double total;
  double most;
};

std::vector<double> waits(size_t devices, std::span<const double> skewsMs) {
  std::vector<double> result(devices, 0.0);
  double last = largest(skewsMs);
  for (size_t d = 0; d < skewsMs.size(); ++d)
    result[d] = last - skewsMs[d];
  return result;
}

/// Per device, the share of the devices that start no later than it does.
std::vector<double> startedShares(const std::vector<double> &waitMs) {
  std::vector<double> sorted = waitMs;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> shares;
  for (double wait : waitMs)
    shares.push_back(static_cast<double>(
                         sorted.end() -
                         std::lower_bound(sorted.begin(), sorted.end(), wait)) /
                     static_cast<double>(sorted.size()));
  return shares;
}

std::vector<float> exchangeFeatures(std::span<const TopologyLevel> levels,
                                    size_t devices, Direction direction,
                                    double totalBytes, double largestWaitMs) {
  std::vector<float> row;
  auto add = [&](double value) { row.push_back(static_cast<float>(value)); };
  add(std::log(static_cast<double>(devices)));
  add(static_cast<double>(levels.size()));
  for (size_t i = 0; i < kFeatureLevels; ++i) {
    if (i >= levels.size()) {
      row.insert(row.end(), 4, 0.0f);
      continue;
    }
    const TopologyLevel &level = levels[levels.size() - 1 - i];
    add(1);
    add(std::log1p(level.latencyUs));
    add(std::log(level.bandwidthGBps));
    add(std::log(static_cast<double>(devices) /
                 static_cast<double>(level.groupSizes.size())));
  }
  for (Direction other :
       {Direction::Input, Direction::Forward, Direction::Backward})
    add(direction == other);
  add(std::log1p(totalBytes));
  add(std::log1p(largestWaitMs));
  return row;
}

} // namespace

std::span<const std::string_view> neuroshard::deviceFeatureNames() {
  return kDeviceNames;
}

std::span<const std::string_view> neuroshard::exchangeFeatureNames() {
  return kExchangeNames;
}

CommunicationFeatures neuroshard::featurizeExchange(
    const Traffic &traffic, std::span<const TopologyLevel> levels,
    std::span<const double> startSkewsMs, Direction direction) {
  CommunicationFeatures result;
  size_t devices = traffic.bytesOut.size();
  result.group = groupOfDevices(levels.back());
  result.groupCount = static_cast<int>(levels.back().groupSizes.size());
  std::vector<double> levelMs = levelTimesMs(traffic, levels);
  result.closedFormMs = slowestLevelMs(levelMs, devices);
  result.waitMs = waits(devices, startSkewsMs);

  LinkBytes sent = LinkBytes::out(traffic), received = LinkBytes::in(traffic);
  Side out(sent.all()), in(received.all());
  std::vector<double> started = startedShares(result.waitMs);
  result.device.reserve(devices * kDeviceFeatureCount);
  auto add = [&](double value) {
    result.device.push_back(static_cast<float>(value));
  };
  for (size_t d = 0; d < devices; ++d) {
    for (double value : {out.logBytes(d), in.logBytes(d), out.shareOfMost(d),
                         in.shareOfMost(d), out.logToMean(d), in.logToMean(d)})
      add(value);
    add(std::log1p(result.waitMs[d]));
    add(std::log1p(result.waitMs[d] /
                   std::max(result.closedFormMs[d], kLeastMs)));
    add(started[d]);
    add(logMs(result.closedFormMs[d]));
    for (size_t i = 0; i < kFeatureLevels; ++i)
      add(i < levels.size()
              ? logMs(levelMs[(levels.size() - 1 - i) * devices + d])
              : logMs(0));
  }
  result.exchange = exchangeFeatures(levels, devices, direction, out.total,
                                     largest(result.waitMs));
  return result;
}
