//===- GroupSearch.cpp - Over groups of devices, then inside each ---------===//
///
/// \file
/// Results of a relayed table leave its group evenly over all links of the
/// group, whichever of its devices have them, and ids come to it likewise. So
/// the links between groups see a plan of tables over groups, and a device only
/// its share of its group's part.
//===----------------------------------------------------------------------===//

#include "GroupSearch.h"

#include "Cost/RelayLoads.h"
#include "GroupModel.h"
#include "GroupRules.h"
#include "GroupSplits.h"
#include "InitialUnits/NestedSearch.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;

namespace {

/// The share of the deadline that these searches may take.
constexpr double kDeadlineShare = 0.15;
/// Parts are split evenly up to this number of shards on a device.
constexpr size_t kMostSplitShards = 32;

/// The devices in one group, with the links of a level.
Topology flatTopology(const TopologyLevel &level, std::vector<Device> devices,
                      std::vector<Host> hosts,
                      const std::vector<const DeviceClass *> &ownClasses) {
  Topology flat;
  flat.ownClasses = ownClasses;
  flat.levels = {level};
  flat.levels.front().groupSizes = {static_cast<int>(devices.size())};
  flat.levels.front().groupBandwidthGBps = 0;
  flat.devices = std::move(devices);
  flat.hosts = std::move(hosts);
  return flat;
}

bool devicesAreAlike(const std::vector<Device> &devices) {
  return std::ranges::all_of(devices, [&](const Device &device) {
    return device.deviceClass == devices.front().deviceClass &&
           device.memoryBytes == devices.front().memoryBytes &&
           device.reserves == devices.front().reserves;
  });
}

class GroupSearch {
public:
  GroupSearch(const SearchContext &context, const SearchRun &run,
              const GroupSearchSettings &settings, int64_t &evaluations)
      : context(context), problem(context.problem), run(run),
        settings(settings), evaluations(evaluations),
        groupSize(relayGroupSize(problem)), rules(context, groupSize) {}

  std::vector<ShardingPlan> plans() {
    if (groupSize == 0 || !devicesAreAlike(problem.topology.devices) ||
        !problem.constraints.fixedShards.empty())
      return {};
    groupCount = context.deviceCount / groupSize;
    std::optional<ShardingPlan> outer = placeOnGroups();
    if (!outer || !takeReplicas(outer->shards))
      return {};
    std::erase_if(outer->shards,
                  [](const Shard &shard) { return shard.hasCopies(); });
    std::vector<ShardingPlan> plans;
    if (std::optional<ShardingPlan> placed = placeInGroups(outer->shards))
      plans.push_back(std::move(*placed));
    ShardingPlan base = replicas;
    bool isSplit = outer->shards.size() <=
                   kMostSplitShards * static_cast<size_t>(groupCount);
    if (isSplit && rules.placeWhole(outer->shards, base))
      if (auto split = splitInGroups(context, groupSize, base, outer->shards,
                                     evaluations))
        plans.insert(plans.begin(), std::move(*split));
    return plans;
  }

private:
  const Host &hostOf(int group) const {
    const Topology &topology = problem.topology;
    const Device &first =
        topology.devices[static_cast<size_t>(group * groupSize)];
    return topology.hosts[static_cast<size_t>(first.host)];
  }

  /// One of the searches over groups (`done` is 0) and inside them.
  std::optional<ShardingPlan> search(const ShardingProblem &part,
                                     const CostModel &model, int done,
                                     int64_t steps) const {
    SearchOptions options =
        optionsWithin(context, kDeadlineShare, static_cast<size_t>(done),
                      static_cast<size_t>(groupCount) + 1);
    if (done == 0 && context.options.deadlineSeconds)
      options.deadlineSeconds =
          *context.options.deadlineSeconds * kDeadlineShare / 2;
    options.evaluationBudget = std::max<int64_t>(1, steps);
    return planFor(part, model, options, run, settings.widths, evaluations);
  }

  std::optional<ShardingPlan> placeOnGroups() const {
    ShardingProblem outer = problem;
    const Topology &topology = problem.topology;
    std::vector<Device> groups;
    std::vector<Host> hosts;
    for (int i = 0; i < groupCount; ++i) {
      Device &group = groups.emplace_back(topology.devices.front());
      group.memoryBytes =
          static_cast<int64_t>(settings.memoryShare * groupSize *
                               static_cast<double>(group.memoryBytes));
      group.host = i;
      hosts.push_back(hostOf(i));
    }
    outer.topology =
        flatTopology(topology.levels.front(), std::move(groups),
                     std::move(hosts), problem.topology.ownClasses);
    for (TableConstraint &constraint : outer.constraints.tables)
      std::ranges::replace(constraint.allowedKinds, ShardingKind::TableRowWise,
                           ShardingKind::TableWise);
    rules.restrictGroups(outer.constraints);
    GroupModel model(context.model, topology, groupSize);
    return search(outer, model, 0, settings.steps);
  }

  /// What is on all groups is on all devices; false where it is on some.
  bool takeReplicas(std::span<const Shard> shards) {
    for (const Shard &shard : shards) {
      if (!shard.hasCopies())
        continue;
      if (static_cast<int>(shard.devices.size()) != groupCount)
        return false;
      Shard &copy = replicas.shards.emplace_back(shard);
      copy.devices.resize(static_cast<size_t>(context.deviceCount));
      std::iota(copy.devices.begin(), copy.devices.end(), 0);
    }
    replicas.deviceCount = context.deviceCount;
    auto bytesOf = [&](std::span<const Shard> some) {
      return planMemory(problem, some).devices.front().peakBytes();
    };
    replicaBytes = bytesOf(replicas.shards) - bytesOf({});
    return true;
  }

  std::optional<ShardingPlan>
  placeInGroups(std::span<const Shard> shards) const {
    ShardingPlan placed = replicas;
    for (int group = 0; group < groupCount; ++group) {
      std::vector<const Shard *> parts;
      for (const Shard &shard : shards)
        if (shard.devices.front() == group)
          parts.push_back(&shard);
      if (context.deadlinePassed() || !placeInGroup(group, parts, placed))
        return std::nullopt;
    }
    return placed;
  }

  bool placeInGroup(int group, std::span<const Shard *const> parts,
                    ShardingPlan &placed) const {
    if (parts.empty())
      return true;
    std::optional<ShardingPlan> inner =
        search(innerProblem(group, parts), context.model, group + 1,
               settings.steps / groupCount);
    if (!inner)
      return false;
    for (Shard &shard : inner->shards) {
      const Shard &part = *parts[static_cast<size_t>(std::stoi(shard.table))];
      shard.table = part.table;
      shard.rowBegin += part.rowBegin;
      shard.rowEnd += part.rowBegin;
      shard.colBegin += part.colBegin;
      shard.colEnd += part.colBegin;
      for (int &device : shard.devices)
        device += group * groupSize;
      placed.shards.push_back(std::move(shard));
    }
    return true;
  }

  /// The parts of tables that a group has, as tables named by their number.
  /// Every sample has its share of the ids. Relays have the whole batch.
  ShardingProblem innerProblem(int group,
                               std::span<const Shard *const> parts) const {
    ShardingProblem inner = problem;
    inner.tables.clear();
    inner.features.clear();
    inner.constraints.tables.clear();
    std::vector<Device> devices(problem.topology.devices.begin(),
                                problem.topology.devices.begin() + groupSize);
    for (Device &device : devices) {
      device.memoryBytes =
          std::max<int64_t>(0, device.memoryBytes - replicaBytes);
      device.host = 0;
    }
    inner.topology =
        flatTopology(problem.topology.levels.back(), std::move(devices),
                     {hostOf(0)}, problem.topology.ownClasses);
    std::vector<int> sources;
    for (const Shard *part : parts) {
      sources.push_back(context.tableIndex(part->table));
      addPart(*part, inner);
    }
    rules.restrictInside(group, sources, inner.constraints);
    return inner;
  }

  void addPart(const Shard &part, ShardingProblem &inner) const {
    int source = context.tableIndex(part.table);
    auto number = static_cast<int>(inner.tables.size());
    Table table = context.table(source);
    double share =
        static_cast<double>(part.rows()) / static_cast<double>(table.rows);
    table.name = std::to_string(number);
    table.rows = part.rows();
    table.dim = part.width();
    inner.tables.push_back(std::move(table));
    for (int index : context.featuresOf(source)) {
      Feature feature = problem.features[static_cast<size_t>(index)];
      feature.name = std::to_string(number) + "/" + feature.name;
      feature.table = number;
      feature.meanPooling *= share;
      feature.p99Pooling *= share;
      inner.features.push_back(std::move(feature));
    }
    inner.constraints.tables.push_back(innerConstraint(source, part, number));
  }

  /// A group has no copies of its own, and cuts a part no other way than the
  /// whole table may be.
  TableConstraint innerConstraint(int source, const Shard &part,
                                  int number) const {
    TableConstraint constraint;
    for (const TableConstraint &given : problem.constraints.tables)
      if (given.table == source)
        constraint = given;
    constraint.table = number;
    std::vector<ShardingKind> &kinds = constraint.allowedKinds;
    if (kinds.empty())
      kinds = {ShardingKind::TableWise, ShardingKind::ColumnWise,
               ShardingKind::RowWise, ShardingKind::RowColumn};
    std::ranges::replace(kinds, ShardingKind::TableRowWise,
                         ShardingKind::RowWise);
    std::erase(kinds, ShardingKind::Replicated);
    const Table &table = context.table(source);
    bool mayMix = std::ranges::count(kinds, ShardingKind::RowColumn) > 0;
    if (part.width() != table.dim && !mayMix)
      std::erase(kinds, ShardingKind::RowWise);
    if (part.rows() != table.rows && !mayMix)
      std::erase(kinds, ShardingKind::ColumnWise);
    if ((part.width() != table.dim || part.rows() != table.rows) &&
        std::ranges::count(kinds, ShardingKind::TableWise) == 0)
      kinds.push_back(ShardingKind::TableWise);
    return constraint;
  }

  const SearchContext &context;
  const ShardingProblem &problem;
  const SearchRun &run;
  const GroupSearchSettings &settings;
  int64_t &evaluations;
  int groupSize;
  GroupRules rules;
  int groupCount = 0;
  ShardingPlan replicas;
  int64_t replicaBytes = 0; ///< of a device.
};

} // namespace

std::vector<ShardingPlan>
neuroshard::searchByGroups(const SearchContext &context, const SearchRun &run,
                           const GroupSearchSettings &settings,
                           int64_t &evaluations) {
  return GroupSearch(context, run, settings, evaluations).plans();
}
