//===- Topology.cpp - Checks of a topology, and its short text form -------===//

#include "neuroshard/Model/Topology.h"

#include "neuroshard/Model/CloudNodes.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>

using namespace neuroshard;

namespace {

std::string inQuotes(std::string_view text) {
  std::string result = "'";
  result += text;
  result += '\'';
  return result;
}

std::string inShort(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// Gigabytes per second with which times stay finite.
bool isRate(double gigabytes) { return gigabytes >= 1e-9 && gigabytes <= 1e30; }

void checkLevel(const TopologyLevel &level, const std::string &where,
                Diagnostics &errors) {
  if (level.groupSizes.empty())
    errors.push_back({where + ".groups", "a level needs at least one group"});
  for (size_t i = 0; i < level.groupSizes.size(); ++i)
    if (level.groupSizes[i] < 1)
      errors.push_back({where + ".groups[" + std::to_string(i) + "]",
                        "a group needs at least 1 device, got: " +
                            std::to_string(level.groupSizes[i])});
  if (!isRate(level.bandwidthGBps))
    errors.push_back({where + ".bandwidth_gb_per_s",
                      "expected a number in [1e-9, 1e30], got: " +
                          inShort(level.bandwidthGBps)});
  if (double shared = level.groupBandwidthGBps; shared != 0 && !isRate(shared))
    errors.push_back(
        {where + ".group_bandwidth_gb_per_s",
         "expected 0, for links that nobody shares, or a number in "
         "[1e-9, 1e30], got: " +
             inShort(shared)});
  if (!(level.latencyUs >= 0 && level.latencyUs <= 1e30))
    errors.push_back(
        {where + ".latency_us",
         "expected a number in [0, 1e30], got: " + inShort(level.latencyUs)});
}

void checkLevels(const Topology &topology, Diagnostics &errors) {
  bool sound = true;
  for (size_t i = 0; i < topology.levels.size(); ++i) {
    std::string where = "topology.levels[" + std::to_string(i) + "]";
    checkLevel(topology.levels[i], where, errors);
    if (double shared = topology.levels[i].groupBandwidthGBps;
        shared != 0 && i + 1 == topology.levels.size())
      errors.push_back({where + ".group_bandwidth_gb_per_s",
                        "expected 0 on the innermost level, whose groups have "
                        "no inner ones to share a link, got: " +
                            inShort(shared)});
    sound = sound && std::ranges::all_of(topology.levels[i].groupSizes,
                                         [](int size) { return size > 0; });
    std::string error =
        sound ? checkGroups(topology.levels, i, topology.deviceCount()) : "";
    if (error.empty())
      continue;
    sound = false;
    errors.push_back({where + ".groups", error});
  }
}

void checkHost(const Host &host, const std::string &where,
               Diagnostics &errors) {
  for (auto [name, bytes] : {std::pair("memory_bytes", host.memoryBytes),
                             std::pair("disk.bytes", host.disk.bytes)})
    if (bytes < 0)
      errors.push_back({where + "." + name, "expected at least 0 bytes, got: " +
                                                std::to_string(bytes)});
  for (auto [name, rate] :
       {std::pair("disk.reads_per_second", host.disk.readsPerSecond),
        std::pair("disk.bandwidth_gb_per_s", host.disk.bandwidthGBps)})
    if (rate != 0 && !(rate >= 1e-3 && rate <= 1e12))
      errors.push_back({where + "." + name,
                        "expected 0, for the default of the device class, or "
                        "a number from 0.001 to 1e12, got: " +
                            inShort(rate)});
}

void checkDevice(const Topology &topology, size_t index, Diagnostics &errors) {
  const Device &device = topology.devices[index];
  std::string where = "topology.devices[" + std::to_string(index) + "]";
  if (!findDeviceClass(topology, device.deviceClass))
    errors.push_back(
        {where + ".class",
         "unknown device class " + inQuotes(device.deviceClass) +
             knownDeviceClasses(device.deviceClass, topology.ownClasses)});
  if (device.memoryBytes < 1)
    errors.push_back(
        {where + ".memory_bytes", "expected at least 1 byte of memory, got: " +
                                      std::to_string(device.memoryBytes)});
  if (device.host < 0 || device.host >= static_cast<int>(topology.hosts.size()))
    errors.push_back(
        {where + ".host", "expected a host below " +
                              std::to_string(topology.hosts.size()) +
                              ", got: " + std::to_string(device.host)});
  std::ranges::move(check(device.reserves, where + ".reserves"),
                    std::back_inserter(errors));
}

std::optional<int> parseCount(std::string_view text) {
  int value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos)
      return parts;
    begin = end + 1;
  }
}

/// Without spaces at both ends.
std::string_view trimmed(std::string_view text) {
  size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Sizes of the nodes that the counts before the class name mean; empty when
/// they are malformed.
std::vector<int> nodeSizes(const std::vector<std::string_view> &counts,
                           const DeviceClass &deviceClass) {
  std::vector<int> nodes;
  for (std::string_view part : split(counts.back(), '+')) {
    std::optional<int> size = parseCount(part);
    if (!size || *size > kMaxDevices)
      return {};
    nodes.push_back(*size);
  }
  if (counts.size() == 2) {
    std::optional<int> repeat = parseCount(counts.front());
    if (!repeat ||
        static_cast<int64_t>(*repeat) * static_cast<int64_t>(nodes.size()) >
            kMaxDevices)
      return {};
    std::vector<int> once = nodes;
    for (int i = 1; i < *repeat; ++i)
      nodes.insert(nodes.end(), once.begin(), once.end());
    return nodes;
  }
  if (nodes.size() != 1)
    return nodes;
  int rest = nodes.front();
  nodes.clear();
  for (; rest > 0; rest -= deviceClass.devicesPerNode)
    nodes.push_back(std::min(rest, deviceClass.devicesPerNode));
  return nodes;
}

/// What the part of a text before the first '@' means.
struct Nodes {
  std::vector<int> sizes;
  const DeviceClass *deviceClass;
  LinkFigures network;
};

/// Counts, and the name behind them, which may have an 'x' too.
struct CountsAndName {
  std::vector<std::string_view> counts;
  std::string_view name;
  const DeviceClass *deviceClass = nullptr;
  const CloudNode *node = nullptr;
};

CountsAndName readName(std::string_view part, DeviceClasses own) {
  CountsAndName found;
  std::string_view rest = part;
  while (true) {
    found.name = trimmed(rest);
    found.deviceClass = findDeviceClassInAnyCase(found.name, own);
    if (!found.deviceClass)
      found.node = findCloudNode(found.name);
    size_t x = rest.find('x');
    if (found.deviceClass || found.node || x == std::string_view::npos)
      return found;
    std::string_view count = trimmed(rest.substr(0, x));
    bool isOfName =
        count.find_first_not_of("0123456789+ ") != std::string_view::npos;
    if (isOfName)
      return found;
    found.counts.push_back(count);
    rest.remove_prefix(x + 1);
  }
}

/// The forms of a part of a text before the first '@'.
constexpr std::string_view kForm =
    "expected [NODES x] DEVICES x CLASS [@ MEMORY] [@ RATE], "
    "e.g. 2x8xA100-40GB";

/// Of "-1" in "-1xCPU": what stands where a count belongs, before a name that
/// is known.
std::optional<std::string_view> wrongCount(std::string_view name,
                                           DeviceClasses own) {
  for (size_t x = name.find('x'); x != std::string_view::npos;
       x = name.find('x', x + 1)) {
    std::string_view behind = trimmed(name.substr(x + 1));
    if (findDeviceClassInAnyCase(behind, own) || findCloudNode(behind))
      return trimmed(name.substr(0, x));
  }
  return std::nullopt;
}

tl::unexpected<Diagnostics>
unknownName(std::string_view name, std::string_view text, DeviceClasses own) {
  if (name.empty())
    return failure("topology", std::string(kForm) + ", got: " + inQuotes(text) +
                                   ", which names no class of devices");
  if (std::optional<std::string_view> count = wrongCount(name, own))
    return failure("topology", "in " + inQuotes(text) +
                                   ": expected a count that is a whole number "
                                   "from 1 to " +
                                   std::to_string(kMaxDevices) +
                                   ", got: " + inQuotes(*count));
  std::string node = cloudSuggestion(name);
  if (name.find(':') != std::string_view::npos || !node.empty())
    return failure("topology", "unknown node " + inQuotes(name) + " in " +
                                   inQuotes(text) + node +
                                   (node.empty() ? "; known: " : " Known: ") +
                                   cloudNodeNames());
  return failure("topology", "unknown device class " + inQuotes(name) + " in " +
                                 inQuotes(text) +
                                 knownDeviceClasses(name, own) +
                                 "; expected e.g. 8xH200, 2x8xA100-40GB or "
                                 "4xaws:p5.48xlarge; 8xMYCARD@cards.json has a "
                                 "class of your own, in a file whose name "
                                 "ends in .json");
}

/// Of "2x8xA100-40GB" or "4xaws:p5.48xlarge"; `text`: for messages.
Expected<Nodes> readNodes(std::string_view part, std::string_view text,
                          DeviceClasses own) {
  auto [counts, name, deviceClass, node] = readName(part, own);
  if (!deviceClass && !node)
    return unknownName(name, text, own);
  if (node) {
    std::optional<int> count = counts.empty() ? 1 : parseCount(counts.front());
    bool fits =
        counts.size() <= 1 && count && *count <= kMaxDevices / node->devices;
    return Nodes{
        std::vector<int>(static_cast<size_t>(fits ? *count : 0), node->devices),
        findDeviceClass(node->deviceClass), node->network};
  }
  if (counts.empty() || counts.size() > 2)
    return failure("topology", std::string(kForm) + ", got: " + inQuotes(text));
  return Nodes{nodeSizes(counts, *deviceClass), deviceClass,
               defaultLink(*deviceClass, 1)};
}

/// Gigabytes per second of "200mbit", "25gbit", "25MB/s" or "12.5GB/s".
std::optional<double> parseRate(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"mbit", 1e-3 / 8}, {"gbit", 1.0 / 8}, {"MB/s", 1e-3}, {"GB/s", 1}};
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit =
      trimmed(text.substr(static_cast<size_t>(end - text.data())));
  for (auto [name, gigabytes] : kUnits)
    if (error == std::errc() && unit == name && number > 0)
      return number * gigabytes;
  return std::nullopt;
}

Topology build(const std::vector<int> &nodes, const DeviceClass &deviceClass,
               const LinkFigures &network, int64_t memoryBytes) {
  Topology topology;
  int total = std::accumulate(nodes.begin(), nodes.end(), 0);
  if (nodes.size() > 1)
    topology.levels.push_back(
        {"cluster", {total}, network.bandwidthGBps, network.latencyUs});
  topology.levels.push_back({"node", nodes, deviceClass.nodeBandwidthGBps,
                             deviceClass.nodeLatencyUs});
  for (size_t node = 0; node < nodes.size(); ++node) {
    topology.hosts.push_back({deviceClass.hostMemoryBytes});
    for (int i = 0; i < nodes[node]; ++i)
      topology.devices.push_back(
          {std::string(deviceClass.name), memoryBytes, static_cast<int>(node)});
  }
  return topology;
}

} // namespace

Diagnostics neuroshard::check(const Topology &topology) {
  Diagnostics errors;
  if (topology.devices.empty())
    return {{"topology.devices", "a topology needs at least one device"}};
  if (topology.devices.size() > kMaxDevices)
    return {{"topology.devices",
             "expected at most " + std::to_string(kMaxDevices) +
                 " devices, got: " + std::to_string(topology.devices.size())}};
  if (topology.levels.empty())
    return {{"topology.levels", "a topology needs at least one level"}};
  checkLevels(topology, errors);
  for (size_t i = 0; i < topology.devices.size(); ++i)
    checkDevice(topology, i, errors);
  for (size_t i = 0; i < topology.hosts.size(); ++i)
    checkHost(topology.hosts[i], "topology.hosts[" + std::to_string(i) + "]",
              errors);
  return errors;
}

std::vector<Disk> neuroshard::disksOf(const Topology &topology) {
  std::vector<Disk> disks;
  for (const Host &host : topology.hosts)
    disks.push_back(host.disk);
  for (const Device &device : topology.devices) {
    Disk &disk = disks[static_cast<size_t>(device.host)];
    const DeviceClass &known = *findDeviceClass(topology, device.deviceClass);
    if (disk.readsPerSecond == 0)
      disk.readsPerSecond = known.diskReadsPerSecond;
    if (disk.bandwidthGBps == 0)
      disk.bandwidthGBps = known.diskBandwidthGBps;
  }
  return disks;
}

Expected<int64_t> neuroshard::parseByteSize(std::string_view text) {
  const std::pair<std::string_view, double> units[] = {
      {"GiB", 1024.0 * 1024 * 1024},
      {"MiB", 1024.0 * 1024},
      {"KiB", 1024.0},
      {"GB", 1e9},
      {"MB", 1e6},
      {"kB", 1e3},
      {"B", 1}};
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ')
    unit.remove_prefix(1);
  for (auto [name, factor] : units) {
    if (error != std::errc() || unit != name)
      continue;
    double bytes = number * factor;
    if (bytes >= 1 && bytes < 0x1p60)
      return static_cast<int64_t>(bytes);
  }
  return failure("size", "expected a size with its unit, such as 40GiB, "
                         "512MiB, 40GB or 4096B, got: " +
                             inQuotes(text));
}

const DeviceClass *neuroshard::findDeviceClass(const Topology &topology,
                                               std::string_view name) {
  for (const DeviceClass *own : topology.ownClasses)
    if (own->name == name)
      return own;
  return findDeviceClass(name);
}

bool neuroshard::isCpu(const Topology &topology, const Device &device) {
  return findDeviceClass(topology, device.deviceClass)->isCpu;
}

Expected<Topology> neuroshard::parseTopology(std::string_view text,
                                             DeviceClasses own) {
  std::vector<std::string_view> settings = split(text, '@');
  Expected<Nodes> found = readNodes(settings.front(), text, own);
  if (!found)
    return tl::unexpected(found.error());
  const auto &[nodes, deviceClass, network] = *found;
  int64_t total = std::accumulate(nodes.begin(), nodes.end(), int64_t{0});
  if (nodes.empty() || total > kMaxDevices)
    return failure("topology", "counts must be whole numbers, and 1 to " +
                                   std::to_string(kMaxDevices) +
                                   " devices in all, got: " + inQuotes(text));
  std::optional<int64_t> memoryBytes;
  std::optional<double> nodeRate;
  for (size_t i = 1; i < settings.size(); ++i) {
    std::string_view setting = trimmed(settings[i]);
    if (std::optional<double> rate = parseRate(setting)) {
      if (nodeRate)
        return failure("topology", "in " + inQuotes(text) + ": a second rate " +
                                       inQuotes(setting));
      if (!isRate(*rate))
        return failure("topology", "in " + inQuotes(text) +
                                       ": expected a rate in [1e-9, 1e30] "
                                       "gigabytes per second, got: " +
                                       inQuotes(setting));
      nodeRate = *rate;
      continue;
    }
    Expected<int64_t> size = parseByteSize(setting);
    if (!size)
      return failure("topology",
                     "in " + inQuotes(text) + ": " +
                         size.error().front().message +
                         "; or the rate that the devices of a node share, such "
                         "as 200mbit, 25gbit, 25MB/s or 12.5GB/s; or a file "
                         "with device classes, whose name ends in .json");
    if (memoryBytes)
      return failure("topology", "in " + inQuotes(text) + ": a second size " +
                                     inQuotes(setting));
    memoryBytes = *size;
  }
  Topology topology = build(nodes, *deviceClass, network,
                            memoryBytes.value_or(deviceClass->memoryBytes));
  if (nodeRate && nodes.size() == 1)
    return failure("topology", "in " + inQuotes(text) +
                                   ": one node has no link to others, so its "
                                   "devices share none");
  if (nodes.size() > 1)
    topology.levels.front().groupBandwidthGBps =
        nodeRate.value_or(deviceClass->networkGroupBandwidthGBps);
  if (deviceClass->isUserDefined)
    topology.ownClasses = {deviceClass};
  return topology;
}
