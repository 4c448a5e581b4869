//===- CommunicationTraining.cpp - Trains communication models ------------===//

#include "neuroshard/Training/CommunicationTraining.h"

#include "CommunicationNetwork.h"
#include "EnsembleMembers.h"
#include "Layers/Standardise.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace neuroshard;

namespace {

ExchangeData featuresOf(const CommunicationSamples &samples,
                        std::span<const size_t> indices) {
  ExchangeData data;
  data.deviceFeatures = kDeviceFeatureCount;
  data.exchangeFeatures = kExchangeFeatureCount;
  auto append = [](auto &to, const auto &from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (size_t i : indices) {
    const CommunicationSample &sample = samples.samples[i];
    Traffic traffic = samples.trafficOf(sample);
    CommunicationFeatures features = featurizeExchange(
        traffic, traffic.topology->levels, sample.skewsMs, sample.direction);
    append(data.device, features.device);
    append(data.exchange, features.exchange);
    append(data.group, features.group);
    append(data.closedFormMs, features.closedFormMs);
    append(data.waitMs, features.waitMs);
    append(data.timesMs, sample.timesMs);
    data.firstDevice.push_back(static_cast<int64_t>(data.group.size()));
  }
  return data;
}

CommunicationNetwork networkOf(const CommunicationMember &member) {
  return {{member.phi.begin(), member.phi.end()},
          {member.head.begin(), member.head.end()}};
}

CommunicationMember memberOf(CommunicationNetwork network) {
  CommunicationMember member;
  std::move(network.phi.begin(), network.phi.end(), member.phi.begin());
  std::move(network.head.begin(), network.head.end(), member.head.begin());
  return member;
}

/// A new network. It begins close to the closed form.
CommunicationNetwork newNetwork(uint64_t seed) {
  CommunicationNetwork network = {
      randomStack({kDeviceFeatureCount, kPhiHidden, kPhiWidth}, seed),
      randomStack({4 * kPhiWidth + kExchangeFeatureCount, kContextHidden,
                   kContextHidden, 1},
                  seed + 1)};
  for (float &weight : network.head.back().weight)
    weight *= 0.1f;
  return network;
}

Expected<void> checkSamples(const CommunicationSamples &samples,
                            std::span<const size_t> indices) {
  for (size_t i : indices)
    for (double ms : samples.samples[i].timesMs)
      if (!(ms > 0) || !std::isfinite(ms))
        return failure("samples[" + std::to_string(i) + "]",
                       "expected positive times, got: " + std::to_string(ms) +
                           " ms");
  return {};
}

/// Sets the facts about the training data.
void describeOrigin(const CommunicationSamples &samples, const Split &split,
                    CommunicationParameters &parameters) {
  auto entry = [&](const char *key) {
    auto found = samples.metadata.find(key);
    return found == samples.metadata.end() ? std::string() : found->second;
  };
  parameters.deviceClass = entry("device_class");
  parameters.backend = entry("backend");
  parameters.measured = entry("measured") != "false";
  parameters.links = samples.links;
  std::set<int> levels(parameters.levelCounts.begin(),
                       parameters.levelCounts.end());
  for (size_t i : split.training) {
    size_t topology = static_cast<size_t>(samples.samples[i].topology);
    levels.insert(static_cast<int>(samples.topologies[topology].levels.size()));
  }
  parameters.levelCounts.assign(levels.begin(), levels.end());
  parameters.card = "{}";
}

void widen(FeatureScale &scale, const FeatureScale &seen) {
  for (size_t f = 0; f < seen.min.size(); ++f) {
    scale.min[f] = std::min(scale.min[f], seen.min[f]);
    scale.max[f] = std::max(scale.max[f], seen.max[f]);
  }
}

void standardiseAll(ExchangeData &data,
                    const CommunicationParameters &parameters) {
  standardise(data.device, parameters.device, kRangeMargin);
  standardise(data.exchange, parameters.exchange, kRangeMargin);
}

} // namespace

std::vector<SampleRole> neuroshard::rolesOf(const CommunicationSamples &samples,
                                            std::span<const int> leaveOut) {
  std::vector<SampleRole> roles;
  for (const CommunicationSample &sample : samples.samples) {
    int devices = static_cast<int>(sample.timesMs.size());
    bool left =
        std::find(leaveOut.begin(), leaveOut.end(), devices) != leaveOut.end();
    roles.push_back({sample.repeatOf, sample.heldOut || left});
  }
  return roles;
}

Expected<CommunicationParameters> neuroshard::trainCommunication(
    const CommunicationSamples &samples, const Split &split,
    const TrainingOptions &options, const CommunicationParameters *from) {
  for (const std::vector<size_t> *part : {&split.training, &split.validation})
    if (Expected<void> sound = checkSamples(samples, *part); !sound)
      return tl::unexpected(sound.error());
  ExchangeData training = featuresOf(samples, split.training);
  ExchangeData validation = featuresOf(samples, split.validation);
  CommunicationParameters parameters;
  FeatureScale device = scaleOf(training.device, kDeviceFeatureCount);
  FeatureScale exchange = scaleOf(training.exchange, kExchangeFeatureCount);
  if (from) {
    parameters = *from;
    widen(parameters.device, device);
    widen(parameters.exchange, exchange);
  } else {
    parameters.device = device;
    parameters.exchange = exchange;
    parameters.members.resize(static_cast<size_t>(options.members));
  }
  describeOrigin(samples, split, parameters);
  standardiseAll(training, parameters);
  standardiseAll(validation, parameters);

  TrainingOptions own = options;
  own.members = static_cast<int>(parameters.members.size());
  trainMembers(
      own, training.size(), [&](size_t member, const FitOptions &fitOptions) {
        CommunicationNetwork network =
            from ? networkOf(parameters.members[member])
                 : newNetwork(memberSeed(own, member));
        fitCommunicationNetwork(network, training, validation, fitOptions);
        parameters.members[member] = memberOf(std::move(network));
      });
  return parameters;
}

std::vector<double>
neuroshard::predictWithTorch(const CommunicationParameters &parameters,
                             const CommunicationSamples &samples,
                             std::span<const size_t> indices) {
  ExchangeData data = featuresOf(samples, indices);
  standardiseAll(data, parameters);
  std::vector<double> times(data.group.size());
  double share = 1.0 / static_cast<double>(parameters.members.size());
  for (const CommunicationMember &member : parameters.members) {
    std::vector<double> r = predictCorrections(networkOf(member), data);
    for (size_t d = 0; d < times.size(); ++d)
      times[d] += share * r[d];
  }
  for (size_t d = 0; d < times.size(); ++d)
    times[d] = data.waitMs[d] + data.closedFormMs[d] * std::exp(times[d]);
  return times;
}
