//===- Assumptions.cpp - Default values that a prediction uses ------------===//

#include "neuroshard/Planner/Assumptions.h"

#include "neuroshard/Model/DeviceClassFields.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <set>

using namespace neuroshard;

namespace {

/// Names in one sentence; the rest are counted.
constexpr size_t kMostNames = 3;

/// "11 of 26 tables", "all 26 tables", "the only table".
std::string counted(size_t count, size_t of, std::string_view what) {
  if (of == 1)
    return "the only " + std::string(what);
  return (count == of ? "all " : std::to_string(count) + " of ") +
         std::to_string(of) + " " + std::string(what) + "s";
}

/// The same with some of the names, unless it is all.
std::string named(const std::vector<std::string> &names, size_t of,
                  std::string_view what) {
  std::string text = counted(names.size(), of, what);
  if (names.size() == of)
    return text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += (i ? ", '" : " ('") + names[i] + "'";
  return text + (names.size() > kMostNames ? ", ...)" : ")");
}

class Finder {
public:
  Finder(const ShardingProblem &problem, const ObjectiveOptions &objective)
      : problem(problem), objective(objective) {}

  std::vector<Assumption> find() {
    findPooling();
    findPeaks();
    findAccess();
    std::set<std::string_view> seen;
    for (const Device &device : problem.topology.devices)
      if (seen.insert(device.deviceClass).second)
        findOfClass(device.deviceClass);
    findLinks();
    if (objective.kind == ObjectiveKind::Step && objective.denseBottomMs == 0 &&
        objective.denseRestMs == 0)
      add("dense", "the dense part of the model takes no time (objective: "
                   "dense_bottom_ms and dense_rest_ms)");
    return std::move(found);
  }

private:
  void add(std::string_view about, std::string text) {
    found.push_back({about, std::move(text)});
  }

  void findPooling() {
    std::vector<std::string> names;
    for (const Feature &feature : problem.features)
      if (feature.meanPooling == 1 && feature.presence == 1 &&
          feature.p99Pooling == 0)
        names.push_back(feature.name);
    if (!names.empty())
      add("pooling",
          "each sample has 1 id of " +
              named(names, problem.features.size(), "feature") +
              ", the default of mean_pooling: 'neuroshard profile' counts "
              "them in batches");
  }

  void findPeaks() {
    if (problem.memoryModel != MemoryModel::Full)
      return;
    size_t count = static_cast<size_t>(
        std::ranges::count_if(problem.features, [](const Feature &feature) {
          return feature.p99Pooling == 0 &&
                 !(feature.meanPooling == 1 && feature.presence == 1);
        }));
    if (count > 0)
      add("peak pooling",
          "no batch has more ids than the mean one of " +
              counted(count, problem.features.size(), "feature") +
              ", which have no p99_pooling: memory of a step may be larger");
  }

  void findAccess() {
    std::vector<std::string> names;
    for (const Table &table : problem.tables)
      if (!table.access)
        names.push_back(table.name);
    if (!names.empty())
      add("access", "ids of " + named(names, problem.tables.size(), "table") +
                        " hit all rows alike, since nothing says how often "
                        "they repeat: 'neuroshard profile' measures it");
  }

  void findOfClass(const std::string &name) {
    const DeviceClass &known = *findDeviceClass(problem.topology, name);
    bool isDefault = std::ranges::any_of(
        problem.topology.devices, [&](const Device &device) {
          return device.deviceClass == name &&
                 device.memoryBytes == known.memoryBytes;
        });
    if (isDefault)
      add("memory", "a device of class " + name + " has " +
                        formatBytes(known.memoryBytes) +
                        " for a process, as its class says");
    findReserves(known);
    if (known.isUserDefined)
      findFigures(known);
  }

  void findReserves(const DeviceClass &known) {
    if (problem.memoryModel != MemoryModel::Full)
      return;
    const Reserves &wanted = problem.constraints.reserves;
    std::string text;
    size_t count = 0;
    // Whether the default is used.
    auto look = [&](std::optional<int64_t> Reserves::*which, const char *what,
                    int64_t usual) {
      bool isGiven = (wanted.*which).has_value() ||
                     std::ranges::all_of(
                         problem.topology.devices, [&](const Device &device) {
                           return device.deviceClass != known.name ||
                                  (device.reserves.*which).has_value();
                         });
      if (isGiven || usual <= 0)
        return false;
      text += (text.empty() ? "" : ", ") + formatBytes(usual) + " for " + what;
      ++count;
      return true;
    };
    bool hasDense =
        look(&Reserves::denseBytes, "the dense model", known.denseReserveBytes);
    look(&Reserves::fragmentationBytes, "the allocator",
         known.fragmentationReserveBytes);
    if (problem.topology.deviceCount() > 1)
      look(&Reserves::communicatorBytes, "the communicator",
           known.communicatorReserveBytes);
    if (!text.empty())
      add("reserves", "a device of class " + std::string(known.name) +
                          " holds back " + text + ": " +
                          whatSetsReserves(known, hasDense, count));
  }

  /// What gives `count` reserves of a class in place of their defaults.
  static std::string whatSetsReserves(const DeviceClass &known, bool hasDense,
                                      size_t count) {
    if (!known.isCpu)
      return "'neuroshard calibrate' measures them from the memory statistics "
             "of a run";
    if (!hasDense)
      return "'neuroshard calibrate' measures them";
    return std::string(count > 1 ? "'neuroshard calibrate' measures them but "
                                   "for the dense model, which is set by "
                                 : "set it by ") +
           "constraints.reserves.dense_bytes of the workload";
  }

  /// Of a class of the user: what its definition does not say.
  void findFigures(const DeviceClass &known) {
    std::span<const DeviceClassField> fields = deviceClassFields();
    std::string text;
    size_t count = 0;
    for (size_t i = 0; i < fields.size(); ++i)
      if (!(known.stated >> i & 1) && fields[i].get(known) != 0 &&
          ++count <= kMostNames)
        text += (text.empty() ? "" : ", ") + std::string(fields[i].name) + " " +
                shortestText(fields[i].get(known));
    if (count > kMostNames)
      text += ", ...";
    if (count > 0)
      add("device class",
          std::to_string(count) + " figures of device class " +
              std::string(known.name) + " are " +
              (known.like ? "those of " + std::string(known.like->name)
                          : std::string("assumed")) +
              ": " + text + "; 'neuroshard devices' lists all");
  }

  void findLinks() {
    const Topology &topology = problem.topology;
    const DeviceClass &known =
        *findDeviceClass(topology, topology.devices.front().deviceClass);
    std::string text;
    for (size_t k = 0; k < std::min<size_t>(topology.levels.size(), 2); ++k) {
      const TopologyLevel &level =
          topology.levels[topology.levels.size() - 1 - k];
      if (LinkFigures{level.latencyUs, level.bandwidthGBps} !=
          defaultLink(known, k))
        continue;
      text += (text.empty() ? "" : ", ") + shortestText(level.bandwidthGBps) +
              " GB/s " + (k == 0 ? "inside a node (" : "between nodes (") +
              sourceText(k == 0 ? known.linkSource : known.networkSource) + ")";
    }
    if (!text.empty() && topology.deviceCount() > 1)
      add("links", "a device of class " + std::string(known.name) +
                       " exchanges " + text);
  }

  const ShardingProblem &problem;
  const ObjectiveOptions &objective;
  std::vector<Assumption> found;
};

} // namespace

std::vector<Assumption>
neuroshard::assumptionsOf(const ShardingProblem &problem,
                          const ObjectiveOptions &objective) {
  return Finder(problem, objective).find();
}
