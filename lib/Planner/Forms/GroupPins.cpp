//===- GroupPins.cpp - A group of devices for each row-wise table ---------===//

#include "GroupPins.h"

#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <utility>

using namespace neuroshard;

namespace {

/// Tables below this share of a mean device's time and memory get no group, so
/// that they can even the groups out.
constexpr double kWorthCutting = 0.1;

struct Candidate {
  /// Index into Constraints::tables.
  size_t constraint = 0;
  int table = 0;
  double ms = 0;
  double bytes = 0;
  /// The larger of both shares of a mean device.
  double weight = 0;
};

class GroupChooser {
public:
  GroupChooser(const ShardingProblem &problem, const CostModel &model);

  std::optional<ShardingProblem> run();

private:
  void measureTables(const CostModel &model);
  bool isFree(int table) const;
  std::vector<Candidate> candidates() const;
  std::vector<int> allowedIn(int group, int table) const;
  std::vector<int> takeGroup(const Candidate &candidate);

  const ShardingProblem &problem;
  const std::vector<int> groupOfDevice;
  const int groupCount;
  /// Time and memory of each table, whole and alone on a device.
  std::vector<double> tableMs, tableBytes;
  double meanMs = 0;
  double meanBytes = 0;
  /// Sums over the tables of each group so far.
  std::vector<double> groupMs, groupBytes;
  /// Per table, the devices it must not be on.
  std::vector<std::vector<int>> forbidden;
};

GroupChooser::GroupChooser(const ShardingProblem &problem,
                           const CostModel &model)
    : problem(problem),
      groupOfDevice(groupOfDevices(problem.topology.levels.back())),
      groupCount(groupOfDevice.back() + 1),
      groupMs(static_cast<size_t>(groupCount)),
      groupBytes(static_cast<size_t>(groupCount)),
      forbidden(problem.tables.size()) {
  measureTables(model);
  for (const ForbidConstraint &forbid : problem.constraints.forbids)
    for (int device : forbid.devices)
      forbidden[static_cast<size_t>(forbid.table)].push_back(device);
}

/// Measures every table on the first device, which is enough to compare them.
void GroupChooser::measureTables(const CostModel &model) {
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::vector<ShardWork> works;
  double bytes = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    Shard whole = wholeOn(table, 0);
    works.push_back(
        describeShard(problem, static_cast<int>(i), features[i], whole));
    MemoryTerms memory = shardMemory(problem, table, features[i], whole);
    tableBytes.push_back(static_cast<double>(memory.peakBytes()));
    bytes += tableBytes.back();
  }
  std::vector<ShardSet> sets;
  const DeviceClass *deviceClass = findDeviceClass(
      problem.topology, problem.topology.devices.front().deviceClass);
  for (const ShardWork &work : works)
    sets.push_back({deviceClass, {&work}});
  std::vector<ComputeMs> times(sets.size());
  model.computeMs(sets, times);
  double ms = 0;
  for (const ComputeMs &time : times) {
    tableMs.push_back(time.total());
    ms += tableMs.back();
  }
  double devices = problem.topology.deviceCount();
  meanMs = std::max(ms / devices, 1e-9);
  meanBytes = std::max(bytes / devices, 1.0);
}

/// May a group be chosen? Not for tables tied to others or written by hand.
bool GroupChooser::isFree(int table) const {
  const Constraints &constraints = problem.constraints;
  auto holds = [&](const std::vector<int> &set) {
    return std::find(set.begin(), set.end(), table) != set.end();
  };
  const std::string &name = problem.tables[static_cast<size_t>(table)].name;
  return std::none_of(constraints.coLocate.begin(), constraints.coLocate.end(),
                      holds) &&
         std::none_of(constraints.separate.begin(), constraints.separate.end(),
                      holds) &&
         std::none_of(
             constraints.pins.begin(), constraints.pins.end(),
             [&](const PinConstraint &pin) { return pin.table == table; }) &&
         std::none_of(constraints.fixedShards.begin(),
                      constraints.fixedShards.end(),
                      [&](const Shard &shard) { return shard.table == name; });
}

/// The tables worth cutting, the largest first.
std::vector<Candidate> GroupChooser::candidates() const {
  std::vector<Candidate> result;
  for (size_t i = 0; i < problem.constraints.tables.size(); ++i) {
    const TableConstraint &constraint = problem.constraints.tables[i];
    auto allows = [&](ShardingKind kind) {
      return std::find(constraint.allowedKinds.begin(),
                       constraint.allowedKinds.end(),
                       kind) != constraint.allowedKinds.end();
    };
    if (!allows(ShardingKind::TableRowWise) || allows(ShardingKind::RowWise) ||
        !isFree(constraint.table))
      continue;
    size_t table = static_cast<size_t>(constraint.table);
    double weight =
        std::max(tableMs[table] / meanMs, tableBytes[table] / meanBytes);
    if (weight >= kWorthCutting)
      result.push_back(
          {i, constraint.table, tableMs[table], tableBytes[table], weight});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return a.weight > b.weight;
                   });
  return result;
}

std::vector<int> GroupChooser::allowedIn(int group, int table) const {
  const std::vector<int> &no = forbidden[static_cast<size_t>(table)];
  std::vector<int> devices;
  for (int device = 0; device < problem.topology.deviceCount(); ++device)
    if (groupOfDevice[static_cast<size_t>(device)] == group &&
        std::find(no.begin(), no.end(), device) == no.end())
      devices.push_back(device);
  return devices;
}

/// Gives the table to the group that is then the least full; returns the
/// group's devices.
std::vector<int> GroupChooser::takeGroup(const Candidate &candidate) {
  int best = -1;
  std::vector<int> devices;
  std::pair<double, double> bestKey;
  for (int group = 0; group < groupCount; ++group) {
    std::vector<int> here = allowedIn(group, candidate.table);
    if (here.empty())
      continue;
    size_t g = static_cast<size_t>(group);
    double size = static_cast<double>(
        std::count(groupOfDevice.begin(), groupOfDevice.end(), group));
    double ms = (groupMs[g] + candidate.ms) / (size * meanMs);
    double bytes = (groupBytes[g] + candidate.bytes) / (size * meanBytes);
    std::pair<double, double> key(std::max(ms, bytes), ms + bytes);
    if (best >= 0 && key >= bestKey)
      continue;
    best = group;
    bestKey = key;
    devices = std::move(here);
  }
  if (best >= 0) {
    groupMs[static_cast<size_t>(best)] += candidate.ms;
    groupBytes[static_cast<size_t>(best)] += candidate.bytes;
  }
  return devices;
}

std::optional<ShardingProblem> GroupChooser::run() {
  std::optional<ShardingProblem> chosen;
  for (const Candidate &candidate : candidates()) {
    std::vector<int> devices = takeGroup(candidate);
    if (devices.empty())
      continue;
    if (!chosen)
      chosen = problem;
    chosen->constraints.pins.push_back({candidate.table, std::move(devices)});
    chosen->constraints.tables[candidate.constraint].allowedKinds.push_back(
        ShardingKind::RowWise);
  }
  return chosen;
}

} // namespace

std::optional<ShardingProblem>
neuroshard::withGroupPins(const ShardingProblem &problem,
                          const CostModel &model) {
  if (problem.target != Target::Native ||
      problem.topology.levels.back().groupSizes.size() < 2 ||
      problem.constraints.tables.empty())
    return std::nullopt;
  return GroupChooser(problem, model).run();
}
