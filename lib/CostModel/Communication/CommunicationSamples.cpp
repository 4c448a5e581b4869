//===- CommunicationSamples.cpp - Files of measured exchanges -------------===//

#include "neuroshard/CostModel/CommunicationSamples.h"

#include "neuroshard/CostModel/Safetensors.h"
#include "neuroshard/Model/DeviceClass.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using namespace neuroshard;
using nlohmann::json;

namespace {

/// Columns of a device, used in both directions.
template <typename Visit> void forEachDeviceField(Visit visit) {
  visit("device.dims", &CommunicationSample::dims);
  visit("device.bytes_out", &CommunicationSample::bytesOut);
  visit("device.bytes_in", &CommunicationSample::bytesIn);
  visit("device.skews_ms", &CommunicationSample::skewsMs);
  visit("device.times_ms", &CommunicationSample::timesMs);
}

/// Columns of a sample: visit(name, stored type's zero, access).
template <typename Visit> void forEachSampleField(Visit visit) {
  visit("sample.topology", int64_t(),
        [](auto &s) -> auto & { return s.topology; });
  visit("sample.direction", uint8_t(),
        [](auto &s) -> auto & { return s.direction; });
  visit("sample.batch", int64_t(), [](auto &s) -> auto & { return s.batch; });
  visit("sample.reference_before_ms", double(),
        [](auto &s) -> auto & { return s.referenceBeforeMs; });
  visit("sample.reference_after_ms", double(),
        [](auto &s) -> auto & { return s.referenceAfterMs; });
  visit("sample.repeat_of", int64_t(),
        [](auto &s) -> auto & { return s.repeatOf; });
  visit("sample.held_out", uint8_t(),
        [](auto &s) -> auto & { return s.heldOut; });
  visit("sample.time", int64_t(), [](auto &s) -> auto & { return s.time; });
}

std::string sampleName(size_t index) {
  return "samples[" + std::to_string(index) + "]";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class ExchangeSamplesReader {
public:
  explicit ExchangeSamplesReader(const TensorFile &file) : file(file) {}

  Expected<CommunicationSamples> read();

private:
  template <typename T> std::vector<T> column(const char *name, int64_t count) {
    Expected<std::vector<T>> values = file.get<T>(name, {count});
    if (values)
      return std::move(*values);
    errors.insert(errors.end(), values.error().begin(), values.error().end());
    return {};
  }
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }
  json list(const char *key);
  void readLinks(const json &links);
  void readTopologies(const json &topologies, const json &links);
  Topology readTopology(const json &levels, const json &links,
                        const DeviceClass &deviceClass);
  void readSamples();
  void readDevices();
  void checkSamples();
  void dropRejected();

  const TensorFile &file;
  Diagnostics errors;
  CommunicationSamples result;
};

/// A metadata entry that holds a JSON list; it does not stay in the metadata.
json ExchangeSamplesReader::list(const char *key) {
  json value = json::parse(result.metadata[key], nullptr, false);
  if (!value.is_array())
    error(key, "expected a JSON list");
  result.metadata.erase(key);
  return value;
}

void ExchangeSamplesReader::readLinks(const json &links) {
  if (links.empty())
    return error("links", "there are none: too few exchanges were measured to "
                          "fit latencies and bandwidths; collect more");
  for (auto link = links.rbegin(); link != links.rend(); ++link) {
    LinkFigures figures{link->at("latency_us").get<double>(),
                        link->at("bandwidth_gb_per_s").get<double>()};
    if (!(figures.latencyUs >= 0) || !(figures.bandwidthGBps > 0))
      return error("links", "expected latencies of at least 0 us and "
                            "bandwidths above 0 GB/s");
    result.links.push_back(figures);
  }
}

Topology ExchangeSamplesReader::readTopology(const json &levels,
                                             const json &links,
                                             const DeviceClass &deviceClass) {
  Topology topology;
  for (const json &level : levels) {
    TopologyLevel read{level.at("name").get<std::string>(),
                       level.at("groups").get<std::vector<int>>(), 0, 0};
    for (const json &link : links)
      if (link.at("name") == read.name) {
        read.latencyUs = link.at("latency_us").get<double>();
        read.bandwidthGBps = link.at("bandwidth_gb_per_s").get<double>();
      }
    topology.levels.push_back(std::move(read));
  }
  if (topology.levels.empty())
    return topology;
  for (int host : groupOfDevices(topology.levels.back())) {
    topology.devices.push_back(
        {std::string(deviceClass.name), deviceClass.memoryBytes, host});
    topology.hosts.resize(static_cast<size_t>(host) + 1,
                          {deviceClass.hostMemoryBytes});
  }
  return topology;
}

void ExchangeSamplesReader::readTopologies(const json &topologies,
                                           const json &links) {
  const std::string &name = result.metadata["device_class"];
  const DeviceClass *deviceClass = findDeviceClass(name);
  if (!deviceClass)
    return error("device_class", "unknown device class '" + name +
                                     "'; known: " + deviceClassNames());
  for (const json &topology : topologies) {
    result.topologies.push_back(
        readTopology(topology.at("levels"), links, *deviceClass));
    for (Diagnostic &problem : check(result.topologies.back()))
      errors.push_back(std::move(problem));
  }
}

void ExchangeSamplesReader::readSamples() {
  Expected<std::vector<int64_t>> topology =
      file.get<int64_t>("sample.topology", {-1});
  if (!topology) {
    errors = topology.error();
    return;
  }
  result.samples.resize(topology->size());
  forEachSampleField([&](const char *name, auto zero, auto access) {
    auto values = column<decltype(zero)>(
        name, static_cast<int64_t>(result.samples.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      auto &target = access(result.samples[i]);
      target =
          static_cast<std::remove_reference_t<decltype(target)>>(values[i]);
    }
  });
}

void ExchangeSamplesReader::readDevices() {
  std::vector<int64_t> first = column<int64_t>(
      "sample.first_device", static_cast<int64_t>(result.samples.size()) + 1);
  if (!errors.empty())
    return;
  bool ascending = std::is_sorted(first.begin(), first.end());
  if (first.front() != 0 || !ascending)
    return error("sample.first_device", "expected ascending numbers from 0");
  forEachDeviceField([&](const char *name, auto member) {
    std::vector<double> values = column<double>(name, first.back());
    for (size_t i = 0; i < result.samples.size() && errors.empty(); ++i)
      (result.samples[i].*member)
          .assign(values.begin() + first[i], values.begin() + first[i + 1]);
  });
}

void ExchangeSamplesReader::checkSamples() {
  int64_t count = static_cast<int64_t>(result.samples.size());
  for (size_t i = 0; i < result.samples.size() && errors.empty(); ++i) {
    const CommunicationSample &sample = result.samples[i];
    if (sample.topology < 0 ||
        sample.topology >= static_cast<int64_t>(result.topologies.size()) ||
        sample.timesMs.size() !=
            result.topologies[static_cast<size_t>(sample.topology)]
                .devices.size())
      error(sampleName(i), "its devices are not those of its topology");
    if (sample.direction > Direction::Backward)
      error(sampleName(i), "unknown direction");
    if (sample.repeatOf < -1 || sample.repeatOf >= count)
      error(sampleName(i), "it repeats sample " +
                               std::to_string(sample.repeatOf) +
                               ", but there are " + std::to_string(count));
    forEachDeviceField([&](const char *name, auto member) {
      for (double value : sample.*member)
        if (!std::isfinite(value) || value < 0)
          error(sampleName(i),
                std::string(name) + ": expected finite numbers of at least 0");
    });
  }
}

void ExchangeSamplesReader::dropRejected() {
  std::vector<uint8_t> rejected = column<uint8_t>(
      "sample.rejected", static_cast<int64_t>(result.samples.size()));
  std::vector<int64_t> position(rejected.size(), -1);
  std::vector<CommunicationSample> kept;
  for (size_t i = 0; i < rejected.size(); ++i) {
    if (rejected[i])
      continue;
    position[i] = static_cast<int64_t>(kept.size());
    kept.push_back(std::move(result.samples[i]));
  }
  for (CommunicationSample &sample : kept)
    if (sample.repeatOf >= 0)
      sample.repeatOf = position[static_cast<size_t>(sample.repeatOf)];
  result.rejected =
      static_cast<int64_t>(rejected.size()) - static_cast<int64_t>(kept.size());
  result.samples = std::move(kept);
}

Expected<CommunicationSamples> ExchangeSamplesReader::read() {
  Expected<std::string> schema = file.getMetadata("schema");
  if (!schema || *schema != kCommunicationSamplesSchema)
    return failure("schema", "expected '" +
                                 std::string(kCommunicationSamplesSchema) +
                                 "', got '" + schema.value_or("") + "'");
  result.metadata = file.metadata;
  result.metadata.erase("schema");
  try {
    json topologies = list("topologies"), links = list("links");
    if (errors.empty())
      readLinks(links);
    if (errors.empty())
      readTopologies(topologies, links);
  } catch (const json::exception &problem) {
    error("topologies", std::string("malformed: ") + problem.what());
  }
  if (errors.empty())
    readSamples();
  if (errors.empty())
    readDevices();
  if (errors.empty())
    checkSamples();
  if (errors.empty())
    dropRejected();
  if (!errors.empty())
    return tl::unexpected(errors);
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The figures of each level, by name, outermost first.
json linksOf(const CommunicationSamples &samples) {
  json links = json::array();
  for (size_t k = samples.links.size(); k-- > 0;)
    for (const Topology &topology : samples.topologies) {
      if (topology.levels.size() <= k)
        continue;
      const std::string &name =
          topology.levels[topology.levels.size() - 1 - k].name;
      links.push_back({{"name", name},
                       {"latency_us", samples.links[k].latencyUs},
                       {"bandwidth_gb_per_s", samples.links[k].bandwidthGBps}});
      break;
    }
  return links;
}

json topologiesOf(const CommunicationSamples &samples) {
  json topologies = json::array();
  for (const Topology &topology : samples.topologies) {
    json levels = json::array();
    for (const TopologyLevel &level : topology.levels)
      levels.push_back({{"name", level.name}, {"groups", level.groupSizes}});
    topologies.push_back({{"levels", levels}});
  }
  return topologies;
}

} // namespace

Traffic
CommunicationSamples::trafficOf(const CommunicationSample &sample) const {
  return {&topologies[static_cast<size_t>(sample.topology)], sample.dims,
          sample.bytesOut, sample.bytesIn};
}

Expected<CommunicationSamples>
neuroshard::readCommunicationSamples(const std::string &path) {
  return readTensorFile(path, [](const TensorFile &file) {
    return ExchangeSamplesReader(file).read();
  });
}

Expected<void>
neuroshard::writeCommunicationSamples(const CommunicationSamples &samples,
                                      const std::string &path) {
  TensorFile file;
  file.metadata = samples.metadata;
  file.metadata["schema"] = kCommunicationSamplesSchema;
  file.metadata["topologies"] = topologiesOf(samples).dump();
  file.metadata["links"] = linksOf(samples).dump();
  auto add = [&](const char *name, const auto &values) {
    using Value = typename std::decay_t<decltype(values)>::value_type;
    file.tensors[name] = makeTensor<Value>(std::span<const Value>(values));
  };
  forEachSampleField([&](const char *name, auto zero, auto access) {
    std::vector<decltype(zero)> values;
    for (const CommunicationSample &sample : samples.samples)
      values.push_back(static_cast<decltype(zero)>(access(sample)));
    add(name, values);
  });
  forEachDeviceField([&](const char *name, auto member) {
    std::vector<double> values;
    for (const CommunicationSample &sample : samples.samples)
      values.insert(values.end(), (sample.*member).begin(),
                    (sample.*member).end());
    add(name, values);
  });
  std::vector<int64_t> first = {0};
  for (const CommunicationSample &sample : samples.samples)
    first.push_back(first.back() + static_cast<int64_t>(sample.timesMs.size()));
  add("sample.first_device", first);
  add("sample.rejected", std::vector<uint8_t>(samples.samples.size()));
  return writeTensorFile(file, path);
}
