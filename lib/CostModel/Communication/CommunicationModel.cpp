//===- CommunicationModel.cpp - Inference of communication models ---------===//

#include "neuroshard/CostModel/CommunicationModel.h"

#include "CommunicationLayers.h"
#include "Layers/DenseLayers.h"
#include "neuroshard/Model/DeviceClass.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace neuroshard;
using dense::LayerView;
using dense::PackedLayer;
using dense::Rows;

namespace {

/// Features whose training range remarks state.
constexpr size_t kLogBytesOut = 0, kLogBytesIn = 1;
constexpr size_t kLogDevices = 0;

/// Figures of a link that differ by a smaller share are the same link.
constexpr double kNearby = 0.25;

/// Adding and taking away this rounds to a multiple of kPhiUnit.
constexpr double kRounding = 0x1.8p52 * kPhiUnit;

/// (clamp(value) - mean) / std of `count` features.
struct Scaler {
  explicit Scaler(const FeatureScale &scale) : scale(scale) {
    for (size_t i = 0; i < scale.mean.size(); ++i) {
      low.push_back(leastValue(scale, i));
      high.push_back(mostValue(scale, i));
    }
  }

  size_t count() const { return low.size(); }
  void apply(const float *features, float *out) const {
    for (size_t i = 0; i < count(); ++i)
      out[i] = standardiseClamped(scale, i,
                                  std::clamp(features[i], low[i], high[i]));
  }
  std::pair<double, double> rangeOf(size_t feature) const {
    return {scale.min[feature], scale.max[feature]};
  }

  FeatureScale scale;
  std::vector<float> low, high;
};

/// One member's layers, ready for the loops.
struct PackedMember {
  explicit PackedMember(const CommunicationMember &member)
      : phi0(member.phi[0]), phi1(member.phi[1]), head0(member.head[0]),
        head1(member.head[1]), head2(member.head[2]) {}

  PackedLayer phi0, phi1, head0, head1, head2;
};

/// phi of all devices, with their means and maxima over the other devices.
class DeviceSet {
public:
  /// Empties it for the devices of an exchange.
  void reset(size_t newWidth, const CommunicationFeatures &newFeatures) {
    width = newWidth;
    features = &newFeatures;
    phi.resize(features->deviceCount() * width);
    all.assign(width, 0);
    groups.assign(static_cast<size_t>(features->groupCount) * width, 0);
    groupSize.assign(static_cast<size_t>(features->groupCount), 0);
    largest.assign(width, kNone);
    second.assign(width, kNone);
  }

  void add(size_t device, const float *values) {
    size_t group = static_cast<size_t>(features->group[device]);
    ++groupSize[group];
    for (size_t k = 0; k < width; ++k) {
      double value = (static_cast<double>(values[k]) + kRounding) - kRounding;
      phi[device * width + k] = value;
      all[k] += value;
      groups[group * width + k] += value;
      second[k] = std::max(second[k], std::min(value, largest[k]));
      largest[k] = std::max(largest[k], value);
    }
  }

  /// Writes 4 x width numbers: see c_d in the header.
  void context(size_t device, float *out) const {
    size_t group = static_cast<size_t>(features->group[device]);
    size_t others = features->deviceCount() - 1;
    for (size_t k = 0; k < width; ++k) {
      double own = phi[device * width + k];
      double most = own == largest[k] ? second[k] : largest[k];
      out[k] = static_cast<float>(own);
      out[width + k] = mean(all[k] - own, others);
      out[2 * width + k] = others > 0 ? static_cast<float>(most) : 0;
      out[3 * width + k] =
          mean(groups[group * width + k] - own, groupSize[group] - 1);
    }
  }

private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  static float mean(double sum, size_t count) {
    return count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : 0;
  }

  size_t width = 0;
  const CommunicationFeatures *features = nullptr;
  std::vector<double> phi, all, groups;
  std::vector<size_t> groupSize;
  /// The second largest equals the largest where two devices have it.
  std::vector<double> largest, second;
};

/// A layer's weights for all its inputs, or for those from `first` on.
LayerView viewOf(const PackedLayer &layer, size_t first = 0) {
  return {layer.weight.data() + first * layer.paddedOut, layer.bias.data(),
          layer.in - first, layer.paddedOut};
}

/// Devices that are handled together.
constexpr size_t kBlock = 16;

/// Evaluates the members on exchanges. Keeps its buffers: a search evaluates
/// thousands of exchanges, and allocations would take longer than the layers.
class MemberRun {
public:
  /// Writes r_d of each device. `scaledDevice` and `scaledExchange` hold the
  /// scaled features.
  void run(const PackedMember &member, const CommunicationFeatures &features,
           double *corrections) {
    fillSet(member, features);
    // The contribution of the exchange's features is the same for all devices.
    size_t width = 4 * member.phi1.out;
    common.resize(1, member.head0.paddedOut);
    applyLayer(viewOf(member.head0, width), scaledExchange, 1, false, common);
    LayerView head0 = viewOf(member.head0);
    head0.in = width;
    head0.bias = common.row(0);

    input.resize(kBlock, width);
    hidden0.resize(kBlock, member.head0.paddedOut);
    hidden1.resize(kBlock, member.head1.paddedOut);
    out.resize(kBlock, member.head2.paddedOut);
    forEachBlock(features, [&](size_t first, size_t count) {
      for (size_t r = 0; r < count; ++r)
        set.context(first + r, input.row(r));
      applyLayer(head0, input, count, true, hidden0);
      applyLayer(viewOf(member.head1), hidden0, count, true, hidden1);
      applyLayer(viewOf(member.head2), hidden1, count, false, out);
      for (size_t r = 0; r < count; ++r)
        corrections[first + r] = std::clamp(static_cast<double>(*out.row(r)),
                                            -kMostCorrection, kMostCorrection);
    });
  }

  Rows scaledDevice, scaledExchange;

private:
  template <typename Visit>
  static void forEachBlock(const CommunicationFeatures &features, Visit visit) {
    for (size_t d = 0; d < features.deviceCount(); d += kBlock)
      visit(d, std::min(kBlock, features.deviceCount() - d));
  }

  void fillSet(const PackedMember &member,
               const CommunicationFeatures &features) {
    set.reset(member.phi1.out, features);
    input.resize(kBlock, scaledDevice.width);
    hidden0.resize(kBlock, member.phi0.paddedOut);
    out.resize(kBlock, member.phi1.paddedOut);
    forEachBlock(features, [&](size_t first, size_t count) {
      std::copy_n(scaledDevice.row(first), count * scaledDevice.width,
                  input.row(0));
      applyLayer(viewOf(member.phi0), input, count, true, hidden0);
      applyLayer(viewOf(member.phi1), hidden0, count, true, out);
      for (size_t r = 0; r < count; ++r)
        set.add(first + r, out.row(r));
    });
  }

  DeviceSet set;
  Rows common, input, hidden0, hidden1, out;
};

bool isNear(double value, double known) {
  return std::abs(value - known) <= kNearby * known;
}

} // namespace

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

struct CommunicationModel::State {
  explicit State(const CommunicationParameters &parameters)
      : device(parameters.device), exchange(parameters.exchange),
        deviceClass(parameters.deviceClass), backend(parameters.backend),
        levelCounts(parameters.levelCounts), links(parameters.links),
        measured(parameters.measured), interval(parameters.interval) {
    for (const CommunicationMember &member : parameters.members)
      members.emplace_back(member);
  }

  /// r_d of each member: [members][D], valid until the thread's next call.
  std::span<const double>
  corrections(const CommunicationFeatures &features) const {
    thread_local MemberRun run;
    thread_local std::vector<double> result;
    run.scaledExchange.resize(1, exchange.count());
    exchange.apply(features.exchange.data(), run.scaledExchange.row(0));
    size_t devices = features.deviceCount();
    run.scaledDevice.resize(devices, device.count());
    for (size_t d = 0; d < devices; ++d)
      device.apply(&features.device[d * device.count()],
                   run.scaledDevice.row(d));
    result.resize(members.size() * devices);
    for (size_t m = 0; m < members.size(); ++m)
      run.run(members[m], features, &result[m * devices]);
    return result;
  }

  Scaler device, exchange;
  std::vector<PackedMember> members;
  std::string deviceClass, backend;
  std::vector<int> levelCounts;
  std::vector<LinkFigures> links;
  bool measured;
  PredictionInterval interval;
};

CommunicationModel::CommunicationModel(
    const CommunicationParameters &parameters)
    : state(std::make_unique<State>(parameters)) {}

CommunicationModel::~CommunicationModel() = default;

const std::string &CommunicationModel::deviceClass() const {
  return state->deviceClass;
}

const std::string &CommunicationModel::backend() const {
  return state->backend;
}

PredictionInterval CommunicationModel::interval() const {
  return state->interval;
}

bool CommunicationModel::measured() const { return state->measured; }

std::pair<int, int> CommunicationModel::deviceCounts() const {
  auto [low, high] = state->exchange.rangeOf(kLogDevices);
  return {static_cast<int>(std::lround(std::exp(low))),
          static_cast<int>(std::lround(std::exp(high)))};
}

double CommunicationModel::mostDeviceBytes() const {
  return std::expm1(std::max(state->device.rangeOf(kLogBytesOut).second,
                             state->device.rangeOf(kLogBytesIn).second));
}

bool CommunicationModel::knowsLink(const TopologyLevel &level) const {
  return std::any_of(state->links.begin(), state->links.end(),
                     [&](const LinkFigures &link) {
                       return isNear(level.latencyUs, link.latencyUs) &&
                              isNear(level.bandwidthGBps, link.bandwidthGBps);
                     });
}

bool CommunicationModel::covers(const Topology &topology) const {
  return std::find(state->levelCounts.begin(), state->levelCounts.end(),
                   static_cast<int>(topology.levels.size())) !=
             state->levelCounts.end() &&
         std::all_of(topology.devices.begin(), topology.devices.end(),
                     [&](const Device &device) {
                       return device.deviceClass == state->deviceClass;
                     });
}

std::vector<TopologyLevel>
CommunicationModel::usedLevels(const Topology &topology) const {
  std::vector<TopologyLevel> levels = topology.levels;
  const DeviceClass *deviceClass = findDeviceClass(state->deviceClass);
  for (size_t k = 0; k < std::min(levels.size(), state->links.size()); ++k) {
    TopologyLevel &level = levels[levels.size() - 1 - k];
    if (defaultLink(*deviceClass, k) !=
        LinkFigures{level.latencyUs, level.bandwidthGBps})
      continue;
    level.latencyUs = state->links[k].latencyUs;
    level.bandwidthGBps = state->links[k].bandwidthGBps;
  }
  return levels;
}

std::vector<double>
CommunicationModel::timesMs(const Traffic &traffic,
                            std::span<const double> startSkewsMs,
                            Direction direction) const {
  CommunicationFeatures features = featurizeExchange(
      traffic, usedLevels(*traffic.topology), startSkewsMs, direction);
  std::vector<double> times = features.waitMs;
  if (features.deviceCount() < 2)
    return times;
  std::span<const double> corrections = state->corrections(features);
  for (size_t d = 0; d < times.size(); ++d) {
    double sum = 0;
    for (size_t i = d; i < corrections.size(); i += times.size())
      sum += corrections[i];
    times[d] += features.closedFormMs[d] *
                std::exp(sum / static_cast<double>(state->members.size()));
  }
  return times;
}

double CommunicationModel::uncertainty(const Traffic &traffic,
                                       std::span<const double> startSkewsMs,
                                       Direction direction) const {
  CommunicationFeatures features = featurizeExchange(
      traffic, usedLevels(*traffic.topology), startSkewsMs, direction);
  if (features.deviceCount() < 2)
    return 0;
  std::span<const double> corrections = state->corrections(features);
  double members = static_cast<double>(state->members.size());
  double largest = 0;
  size_t devices = features.deviceCount();
  for (size_t d = 0; d < devices; ++d) {
    double sum = 0, squares = 0;
    for (size_t i = d; i < corrections.size(); i += devices)
      sum += corrections[i];
    for (size_t i = d; i < corrections.size(); i += devices)
      squares +=
          (corrections[i] - sum / members) * (corrections[i] - sum / members);
    largest = std::max(largest, std::sqrt(squares / members));
  }
  return largest;
}
