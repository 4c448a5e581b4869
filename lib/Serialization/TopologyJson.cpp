//===- TopologyJson.cpp - Topologies as JSON, by name and in files --------===//

#include "TopologyJson.h"

#include "neuroshard/Serialization/Json.h"

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

Topology json::readTopology(Reader &reader, const Json &value,
                            const Path &path) {
  Topology topology;
  if (value.is_string()) {
    Expected<Topology> parsed =
        parseTopology(value.get_ref<const std::string &>());
    if (parsed)
      return *parsed;
    for (const Diagnostic &diagnostic : parsed.error())
      reader.error(path, diagnostic.message);
    return topology;
  }
  Object object(reader, value, path);
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

Json json::writeTopology(const Topology &topology) {
  Json json;
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

Expected<Topology> neuroshard::topologyNamed(std::string_view name) {
  return name.ends_with(".json") ? readTopology(std::string(name))
                                 : parseTopology(name);
}
