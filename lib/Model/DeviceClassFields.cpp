//===- DeviceClassFields.cpp - Device classes that users define -----------===//

#include "neuroshard/Model/DeviceClassFields.h"

#include "neuroshard/Model/CloudNodes.h"
#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <mutex>

using namespace neuroshard;

namespace {

constexpr double kLeastRate = 1e-9, kMostRate = 1e12, kMostBytes = 0x1p60;
constexpr double kMostUs = 1e9, kMostScale = 1e6;
constexpr bool kRequired = true, kOptional = false;

template <auto Member> constexpr double get(const DeviceClass &deviceClass) {
  return static_cast<double>(deviceClass.*Member);
}

template <auto Member>
constexpr void set(DeviceClass &deviceClass, double value) {
  using Number = std::remove_reference_t<decltype(deviceClass.*Member)>;
  deviceClass.*Member = static_cast<Number>(value);
}

template <auto Member>
constexpr DeviceClassField rate(std::string_view name, std::string_view meaning,
                                bool isRequired = kOptional,
                                double least = kLeastRate) {
  return {name,  meaning,    least,        kMostRate,
          false, isRequired, &get<Member>, &set<Member>};
}

template <auto Member>
constexpr DeviceClassField
bytes(std::string_view name, std::string_view meaning,
      bool isRequired = kOptional, double least = 0) {
  return {name, meaning,    least,        kMostBytes,
          true, isRequired, &get<Member>, &set<Member>};
}

template <auto Member>
constexpr DeviceClassField time(std::string_view name,
                                std::string_view meaning) {
  return {name,      meaning,      0,           kMostUs, false,
          kOptional, &get<Member>, &set<Member>};
}

template <auto Member>
constexpr DeviceClassField share(std::string_view name,
                                 std::string_view meaning) {
  return {name, meaning, 1e-6, 1, false, kOptional, &get<Member>, &set<Member>};
}

constexpr double forwardScale(const DeviceClass &deviceClass) {
  return deviceClass.kernelScale.forward;
}
constexpr void setForwardScale(DeviceClass &deviceClass, double value) {
  deviceClass.kernelScale.forward = value;
}
constexpr double backwardScale(const DeviceClass &deviceClass) {
  return deviceClass.kernelScale.backward;
}
constexpr void setBackwardScale(DeviceClass &deviceClass, double value) {
  deviceClass.kernelScale.backward = value;
}

using Class = DeviceClass;

// clang-format off
constexpr DeviceClassField kFields[] = {
    bytes<&Class::memoryBytes>("memory_bytes", "device memory that a process can use", kRequired, 1),
    bytes<&Class::hostMemoryBytes>("host_memory_bytes", "memory of a host", kRequired, 0),
    bytes<&Class::denseReserveBytes>("dense_reserve_bytes", "held back for the dense model"),
    bytes<&Class::fragmentationReserveBytes>("fragmentation_reserve_bytes", "held back for the allocator"),
    bytes<&Class::communicatorReserveBytes>("communicator_reserve_bytes", "held back for the communicator, of several devices"),
    rate<&Class::memoryBandwidthGBps>("memory_bandwidth_gb_per_s", "what a copy in device memory reaches", kRequired),
    rate<&Class::cacheBandwidthGBps>("cache_bandwidth_gb_per_s", "the same in the last-level cache"),
    bytes<&Class::cacheBytes>("cache_bytes", "size of the last-level cache"),
    share<&Class::forwardEfficiency>("forward_efficiency", "share of the bandwidth that lookups reach"),
    share<&Class::backwardEfficiency>("backward_efficiency", "share of the bandwidth that updates reach"),
    time<&Class::forwardLaunchUs>("forward_launch_us", "fixed part of the lookups of a device"),
    time<&Class::backwardLaunchUs>("backward_launch_us", "fixed part of its updates"),
    time<&Class::perShardUs>("per_shard_us", "fixed part of each of its shards"),
    {"forward_scale", "time of lookups over that of the class it is like", 1 / kMostScale, kMostScale, false, kOptional, &forwardScale, &setForwardScale},
    {"backward_scale", "time of updates over that of the class it is like", 1 / kMostScale, kMostScale, false, kOptional, &backwardScale, &setBackwardScale},
    {"devices_per_node", "devices of a node", 1, 1e6, true, kOptional, &get<&Class::devicesPerNode>, &set<&Class::devicesPerNode>},
    rate<&Class::nodeBandwidthGBps>("node_bandwidth_gb_per_s", "link inside a node, per device and direction", kRequired),
    time<&Class::nodeLatencyUs>("node_latency_us", "its latency"),
    rate<&Class::networkBandwidthGBps>("network_bandwidth_gb_per_s", "link between nodes, per device and direction", kRequired),
    time<&Class::networkLatencyUs>("network_latency_us", "its latency"),
    rate<&Class::networkGroupBandwidthGBps>("network_group_bandwidth_gb_per_s", "what the devices of a node share of it; 0: nothing is shared", kOptional, 0),
    rate<&Class::hostBandwidthGBps>("host_bandwidth_gb_per_s", "rows from and to host memory, per device and direction", kRequired),
    rate<&Class::diskReadsPerSecond>("disk_reads_per_second", "transfers of 4 KiB at random of the disks of a host"),
    rate<&Class::diskBandwidthGBps>("disk_bandwidth_gb_per_s", "bandwidth of the disks of a host"),
};
// clang-format on
constexpr size_t kFieldCount = std::size(kFields);
static_assert(kFieldCount <= 64, "DeviceClass::stated has a bit for each");

/// What is assumed of a class that is like no other: of a GPU, what all GPUs
/// have here.
DeviceClass assumed(bool isCpu) {
  DeviceClass made =
      isCpu ? *findDeviceClass(kCpuClass) : *findDeviceClass("H100-PCIe");
  made.cacheBandwidthGBps = 0;
  made.cacheBytes = 0;
  if (!isCpu) {
    made.forwardEfficiency = 0.65;
    made.backwardEfficiency = 0.45;
    made.nodeLatencyUs = 15;
  }
  return made;
}

FigureSource sourceOfBuiltIn(const DeviceClass &deviceClass,
                             std::string_view field) {
  if (field == "memory_bytes" || field == "host_memory_bytes" ||
      field == "devices_per_node")
    return FigureSource::DataSheet;
  if (field == "memory_bandwidth_gb_per_s")
    return deviceClass.memorySource;
  if (field.starts_with("cache_"))
    return deviceClass.cacheSource;
  if (field.ends_with("_efficiency"))
    return deviceClass.kernelSource;
  if (field.starts_with("node_"))
    return deviceClass.linkSource;
  if (field.starts_with("network_bandwidth"))
    return FigureSource::DataSheet;
  if (field.starts_with("disk_"))
    return deviceClass.isCpu ? FigureSource::Measured : FigureSource::DataSheet;
  return FigureSource::Estimate;
}

bool states(const DeviceClass &deviceClass, size_t index) {
  return (deviceClass.stated >> index & 1) != 0;
}

/// Names and texts of classes live as long as the process.
std::string_view keep(const std::string &text) {
  static std::deque<std::string> texts;
  for (const std::string &kept : texts)
    if (kept == text)
      return kept;
  return texts.emplace_back(text);
}

/// The one object of a class with these figures.
const DeviceClass *keep(DeviceClass made, const std::string &name) {
  static std::mutex mutex;
  static std::deque<DeviceClass> classes;
  std::lock_guard lock(mutex);
  made.name = keep(name);
  for (const DeviceClass &kept : classes)
    if (kept == made)
      return &kept;
  return &classes.emplace_back(made);
}

class Definer {
public:
  explicit Definer(const DeviceClassDefinition &definition)
      : definition(definition) {}

  Expected<const DeviceClass *> define() {
    checkName();
    readBase();
    for (const auto &[field, value] : definition.numbers)
      readNumber(field, value);
    checkScales();
    if (!base && errors.empty())
      addMissing();
    if (!errors.empty())
      return tl::unexpected(std::move(errors));
    if (!base && made.cacheBandwidthGBps == 0)
      made.cacheBandwidthGBps = made.memoryBandwidthGBps;
    made.like = base;
    made.isUserDefined = true;
    setSources();
    return keep(made, definition.name);
  }

private:
  void error(std::string_view field, std::string message) {
    errors.push_back({std::string(field), std::move(message)});
  }

  void checkName() {
    const std::string &name = definition.name;
    bool isWord = !name.empty() && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    });
    bool beginsWithDigit = isWord && name[0] >= '0' && name[0] <= '9';
    if (!isWord || beginsWithDigit || name.size() > 100)
      return error("name",
                   "expected a name of at most 100 letters, digits, "
                   "'-', '_' and '.' that begins with no digit, got: '" +
                       name.substr(0, 100) + "'");
    if (const CloudNode *node = findCloudNode(name))
      error("name", "'" + name + "' is " + std::string(node->name) +
                        ", a node of a cloud; choose another name");
    if (const DeviceClass *known = findDeviceClassInAnyCase(name))
      error("name", "'" + name + "' is the built-in class " +
                        std::string(known->name) +
                        "; choose another name, such as '" + name +
                        "-own', and say that it is like this class");
  }

  void readBase() {
    if (!definition.like.empty()) {
      base = findDeviceClassInAnyCase(definition.like);
      if (!base)
        error("like", "unknown device class '" + definition.like + "'" +
                          knownDeviceClasses(definition.like));
    }
    bool isCpu = base && base->isCpu;
    if (!definition.kind.empty()) {
      if (definition.kind != "cpu" && definition.kind != "gpu")
        error("kind", "expected cpu or gpu, got: '" + definition.kind + "'" +
                          didYouMean(definition.kind, {"cpu", "gpu"}));
      else if (base && (definition.kind == "cpu") != isCpu)
        error("kind", "is " + definition.kind + ", but the class it is like, " +
                          std::string(base->name) + ", is a " +
                          (isCpu ? "cpu" : "gpu"));
      isCpu = definition.kind == "cpu";
    }
    made = base ? *base : assumed(isCpu);
    for (FigureSource *source : {&made.linkSource, &made.kernelSource,
                                 &made.memorySource, &made.cacheSource})
      if (*source == FigureSource::Measured)
        *source = FigureSource::OtherGpu;
    made.isCpu = isCpu;
  }

  void readNumber(std::string_view name, double value) {
    const auto *field =
        std::ranges::find(kFields, name, &DeviceClassField::name);
    if (field == std::end(kFields)) {
      std::vector<std::string> names = {"name", "like", "kind"};
      for (const DeviceClassField &known : kFields)
        names.emplace_back(known.name);
      std::string suggestion = didYouMean(name, names);
      return error(name, "unknown field" +
                             (suggestion.empty()
                                  ? "; 'neuroshard devices --fields' lists them"
                                  : suggestion));
    }
    auto bit = uint64_t{1} << (field - kFields);
    if (made.stated & bit)
      return error(name, "is there twice");
    made.stated |= bit;
    if (!(value >= field->least && value <= field->most) ||
        (field->isWhole && value != std::floor(value)))
      return error(name, std::string("expected ") +
                             (field->isWhole ? "a whole number" : "a number") +
                             " from " + shortestText(field->least) + " to " +
                             shortestText(field->most) +
                             ", got: " + shortestText(value));
    field->set(made, value);
  }

  void checkScales() {
    auto [forward, backward] = made.kernelScale;
    if (forward == 0 && backward == 0)
      return;
    if (forward == 0 || backward == 0)
      error(forward == 0 ? "forward_scale" : "backward_scale",
            "is missing: kernels that are like another class's need both "
            "forward_scale and backward_scale");
    if (definition.like.empty())
      error("like", "is missing: forward_scale and backward_scale say how "
                    "kernels compare with those of a class");
  }

  void addMissing() {
    std::string missing;
    for (size_t i = 0; i < kFieldCount; ++i)
      if (kFields[i].isRequired && !states(made, i))
        missing += (missing.empty() ? "" : ", ") + std::string(kFields[i].name);
    if (!missing.empty() && definition.like.empty())
      error("", "missing: " + missing +
                    "; or name a class that it is like, which has them");
  }

  void setSources() {
    for (size_t i = 0; i < kFieldCount; ++i) {
      if (!states(made, i))
        continue;
      std::string_view name = kFields[i].name;
      if (name.starts_with("node_"))
        made.linkSource = FigureSource::Stated;
      if (name.starts_with("network_"))
        made.networkSource = FigureSource::Stated;
      // Fitted to the links of the class it is like.
      if (name.starts_with("node_") || name.starts_with("network_"))
        made.exchangeExtra = {};
      if (name.starts_with("memory_band") || name.starts_with("cache_") ||
          name.ends_with("_efficiency") || name.ends_with("_scale") ||
          name.ends_with("launch_us"))
        made.kernelSource = FigureSource::Stated;
    }
  }

  const DeviceClassDefinition &definition;
  const DeviceClass *base = nullptr;
  DeviceClass made = {};
  Diagnostics errors;
};

} // namespace

std::span<const DeviceClassField> neuroshard::deviceClassFields() {
  return kFields;
}

std::string neuroshard::figureSource(const DeviceClass &deviceClass,
                                     size_t index) {
  if (deviceClass.isUserDefined) {
    if (states(deviceClass, index))
      return sourceText(FigureSource::Stated);
    return deviceClass.like ? "as " + std::string(deviceClass.like->name)
                            : "assumed";
  }
  return sourceText(sourceOfBuiltIn(deviceClass, kFields[index].name));
}

Expected<const DeviceClass *>
neuroshard::defineDeviceClass(const DeviceClassDefinition &definition) {
  return Definer(definition).define();
}

DeviceClassDefinition neuroshard::definitionOf(const DeviceClass &deviceClass) {
  DeviceClassDefinition definition{std::string(deviceClass.name)};
  if (deviceClass.like)
    definition.like = deviceClass.like->name;
  else
    definition.kind = deviceClass.isCpu ? "cpu" : "gpu";
  for (size_t i = 0; i < kFieldCount; ++i)
    if (states(deviceClass, i))
      definition.numbers.emplace_back(kFields[i].name,
                                      kFields[i].get(deviceClass));
  return definition;
}
