//===- TopologyJson.cpp - Topologies as JSON, by name and in files --------===//

#include "TopologyJson.h"

#include "neuroshard/Model/DeviceClassFields.h"
#include "neuroshard/Serialization/Json.h"

#include <algorithm>

using namespace neuroshard;
using namespace neuroshard::json;

Reserves json::readReserves(Reader &reader, const Json &value,
                            const Path &path) {
  Reserves reserves;
  Object object(reader, value, path);
  object.optional("dense_bytes", reserves.denseBytes);
  object.optional("fragmentation_bytes", reserves.fragmentationBytes);
  object.optional("communicator_bytes", reserves.communicatorBytes);
  return reserves;
}

static Disk readDisk(Reader &reader, const Json &value, const Path &path) {
  Disk disk;
  Object object(reader, value, path);
  object.optional("bytes", disk.bytes);
  object.optional("reads_per_second", disk.readsPerSecond);
  object.optional("bandwidth_gb_per_s", disk.bandwidthGBps);
  return disk;
}

/// Marks all fields of a definition as known: defineDeviceClass() refuses those
/// that are not.
static void readDefinition(Reader &reader, const Json &item, const Path &where,
                           std::vector<const DeviceClass *> &classes) {
  size_t errorsBefore = reader.errors.size();
  DeviceClassDefinition definition;
  Object entry(reader, item, where);
  if (!item.is_object())
    return;
  entry.required("name", definition.name);
  entry.optional("like", definition.like);
  entry.optional("kind", definition.kind);
  for (const auto &[key, value] : item.items()) {
    if (key == "name" || key == "like" || key == "kind")
      continue;
    double number = 0;
    entry.find(key);
    if (value.is_string() && key.ends_with("_bytes")) {
      Expected<int64_t> bytes =
          parseByteSize(value.get_ref<const std::string &>());
      if (bytes)
        definition.numbers.emplace_back(key, static_cast<double>(*bytes));
      else
        reader.error(Path(where, key), bytes.error().front().message);
      continue;
    }
    if (reader.read(value, Path(where, key), number))
      definition.numbers.emplace_back(key, number);
  }
  if (reader.errors.size() > errorsBefore)
    return;
  Expected<const DeviceClass *> made = defineDeviceClass(definition);
  if (!made) {
    for (const Diagnostic &diagnostic : made.error())
      if (diagnostic.where.empty())
        reader.error(where, diagnostic.message);
      else
        reader.error(Path(where, diagnostic.where), diagnostic.message);
    return;
  }
  if (std::ranges::any_of(classes, [&](const DeviceClass *known) {
        return known->name == definition.name;
      }))
    return reader.error(Path(where, "name"),
                        "a second device class '" + definition.name + "'");
  classes.push_back(*made);
}

void json::readDeviceClasses(Reader &reader, const Json &value,
                             const Path &path,
                             std::vector<const DeviceClass *> &classes) {
  reader.list(value, path, [&](const Json &item, const Path &where) {
    readDefinition(reader, item, where, classes);
  });
}

Topology json::readTopology(Reader &reader, const Json &value,
                            const Path &path) {
  Topology topology;
  if (value.is_string()) {
    Expected<Topology> parsed =
        topologyOfText(value.get_ref<const std::string &>());
    if (parsed)
      return *parsed;
    for (const Diagnostic &diagnostic : parsed.error())
      reader.error(path, diagnostic.message);
    return topology;
  }
  Object object(reader, value, path);
  if (const Json *classes = object.find("device_classes"))
    readDeviceClasses(reader, *classes, Path(path, "device_classes"),
                      topology.ownClasses);
  if (const Json *levels = object.findRequired("levels"))
    reader.list(*levels, Path(path, "levels"),
                [&](const Json &item, const Path &where) {
                  TopologyLevel level;
                  Object entry(reader, item, where);
                  entry.required("name", level.name);
                  if (const Json *groups = entry.findRequired("groups"))
                    reader.list(*groups, Path(where, "groups"),
                                [&](const Json &size, const Path &place) {
                                  reader.read(size, place,
                                              level.groupSizes.emplace_back());
                                });
                  entry.required("bandwidth_gb_per_s", level.bandwidthGBps);
                  entry.required("latency_us", level.latencyUs);
                  entry.optional("group_bandwidth_gb_per_s",
                                 level.groupBandwidthGBps);
                  topology.levels.push_back(std::move(level));
                });
  if (const Json *hosts = object.findRequired("hosts"))
    reader.list(*hosts, Path(path, "hosts"),
                [&](const Json &item, const Path &where) {
                  Object entry(reader, item, where);
                  Host &host = topology.hosts.emplace_back();
                  entry.required("memory_bytes", host.memoryBytes);
                  if (const Json *disk = entry.find("disk"))
                    host.disk = readDisk(reader, *disk, Path(where, "disk"));
                });
  if (const Json *devices = object.findRequired("devices"))
    reader.list(*devices, Path(path, "devices"),
                [&](const Json &item, const Path &where) {
                  Device device;
                  Object entry(reader, item, where);
                  entry.required("class", device.deviceClass);
                  entry.required("memory_bytes", device.memoryBytes);
                  entry.required("host", device.host);
                  if (const Json *reserves = entry.find("reserves"))
                    device.reserves = readReserves(reader, *reserves,
                                                   Path(where, "reserves"));
                  topology.devices.push_back(std::move(device));
                });
  return topology;
}

Json json::writeReserves(const Reserves &reserves) {
  Json json = Json::object();
  if (reserves.denseBytes)
    json["dense_bytes"] = *reserves.denseBytes;
  if (reserves.fragmentationBytes)
    json["fragmentation_bytes"] = *reserves.fragmentationBytes;
  if (reserves.communicatorBytes)
    json["communicator_bytes"] = *reserves.communicatorBytes;
  return json;
}

static Json writeDisk(const Disk &disk) {
  Json json = Json::object();
  if (disk.bytes > 0)
    json["bytes"] = disk.bytes;
  if (disk.readsPerSecond > 0)
    json["reads_per_second"] = disk.readsPerSecond;
  if (disk.bandwidthGBps > 0)
    json["bandwidth_gb_per_s"] = disk.bandwidthGBps;
  return json;
}

static Json writeDefinition(const DeviceClass &deviceClass) {
  DeviceClassDefinition definition = definitionOf(deviceClass);
  Json json;
  json["name"] = definition.name;
  if (!definition.like.empty())
    json["like"] = definition.like;
  if (!definition.kind.empty())
    json["kind"] = definition.kind;
  for (const auto &[field, value] : definition.numbers)
    json[field] = value;
  return json;
}

Json json::writeTopology(const Topology &topology) {
  Json json;
  for (const DeviceClass *deviceClass : topology.ownClasses)
    json["device_classes"].push_back(writeDefinition(*deviceClass));
  json["levels"] = Json::array();
  for (const TopologyLevel &level : topology.levels) {
    Json &entry = json["levels"].emplace_back();
    entry["name"] = level.name;
    entry["groups"] = level.groupSizes;
    entry["bandwidth_gb_per_s"] = level.bandwidthGBps;
    entry["latency_us"] = level.latencyUs;
    if (level.groupBandwidthGBps > 0)
      entry["group_bandwidth_gb_per_s"] = level.groupBandwidthGBps;
  }
  json["hosts"] = Json::array();
  for (const Host &host : topology.hosts) {
    Json &entry = json["hosts"].emplace_back();
    entry["memory_bytes"] = host.memoryBytes;
    if (host.disk != Disk())
      entry["disk"] = writeDisk(host.disk);
  }
  json["devices"] = Json::array();
  for (const Device &device : topology.devices) {
    Json &entry = json["devices"].emplace_back();
    entry["class"] = device.deviceClass;
    entry["memory_bytes"] = device.memoryBytes;
    entry["host"] = device.host;
    if (Json reserves = writeReserves(device.reserves); !reserves.empty())
      entry["reserves"] = std::move(reserves);
  }
  return json;
}

static Expected<Topology> parseTopologyOf(std::string_view text) {
  Expected<Json> root = parse(text);
  if (!root)
    return tl::unexpected(root.error());
  if (!root->is_object() || !root->contains("topology"))
    return failure("", "expected a file with a topology, such as one of "
                       "neuroshard calibrate");
  Diagnostics errors;
  Reader reader(errors);
  Path path;
  Topology topology =
      readTopology(reader, (*root)["topology"], Path(path, "topology"));
  if (errors.empty())
    errors = check(topology);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return topology;
}

Expected<Topology> neuroshard::readTopology(const std::string &path) {
  return readAs(path, parseTopologyOf);
}

/// Checks all but the classes of a file that has some. What else a workload or
/// a machine file has is checked by the readers of those.
static void checkClassFile(Reader &reader, const Json &root, const Path &path) {
  Object object(reader, root, path);
  std::string schema(kMachineSchema);
  if (object.optional("schema", schema) && schema != kMachineSchema &&
      schema != kWorkloadSchema)
    reader.error(Path(path, "schema"),
                 "expected '" + std::string(kMachineSchema) + "' or '" +
                     std::string(kWorkloadSchema) + "', got: '" + schema + "'");
  object.find("device_classes");
  object.find("topology");
  if (schema == kWorkloadSchema || root.contains("cost_model"))
    for (const auto &[key, value] : root.items())
      object.find(key);
}

static Expected<std::vector<const DeviceClass *>>
parseDeviceClasses(std::string_view text) {
  Expected<Json> root = parse(text);
  if (!root)
    return tl::unexpected(root.error());
  Diagnostics errors;
  Reader reader(errors);
  Path path;
  std::vector<const DeviceClass *> classes;
  auto readFrom = [&](const Json &object, const Path &where) {
    if (!object.is_object() || !object.contains("device_classes"))
      return false;
    readDeviceClasses(reader, object["device_classes"],
                      Path(where, "device_classes"), classes);
    return true;
  };
  bool found = readFrom(*root, path);
  if (!found && root->is_object() && root->contains("topology"))
    found = readFrom((*root)["topology"], Path(path, "topology"));
  if (!found)
    return failure("", "expected a file with \"device_classes\": [{\"name\": "
                       "...}, ...], in it or in its topology");
  checkClassFile(reader, *root, path);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return classes;
}

Expected<std::vector<const DeviceClass *>>
neuroshard::readDeviceClasses(const std::string &path) {
  return readAs(path, parseDeviceClasses);
}

Expected<Topology> neuroshard::topologyOfText(std::string_view text,
                                              DeviceClasses own) {
  std::vector<const DeviceClass *> classes(own.begin(), own.end());
  std::string rest;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('@', begin), text.size());
    std::string_view setting = text.substr(begin, end - begin);
    begin = end + 1;
    size_t first = setting.find_first_not_of(' ');
    size_t last = setting.find_last_not_of(' ');
    std::string_view name = first == std::string_view::npos
                                ? setting
                                : setting.substr(first, last + 1 - first);
    if (rest.empty() || !name.ends_with(".json")) {
      rest += (rest.empty() ? "" : "@") + std::string(setting);
      continue;
    }
    auto read = readDeviceClasses(std::string(name));
    if (!read)
      return tl::unexpected(read.error());
    classes.insert(classes.end(), read->begin(), read->end());
  }
  return parseTopology(rest, classes);
}

/// Whether a text begins with a count, as those for parseTopology() do.
static bool beginsWithCount(std::string_view text) {
  size_t end = text.find_first_not_of("0123456789+ ");
  return end > 0 && end != std::string_view::npos && text[end] == 'x';
}

Expected<Topology> neuroshard::topologyNamed(std::string_view name,
                                             DeviceClasses own) {
  bool isFile =
      name.ends_with(".json") &&
      (name.find('@') == std::string_view::npos || !beginsWithCount(name));
  return isFile ? readTopology(std::string(name)) : topologyOfText(name, own);
}
