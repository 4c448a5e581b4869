//===- TargetRules.cpp - Shards that a target runs, for searches ----------===//

#include "TargetRules.h"

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <algorithm>
#include <map>

using namespace neuroshard;

bool neuroshard::everyDeviceNeedsRows(const ShardingProblem &problem) {
  if (problem.target != Target::TorchRec19)
    return false;
  return std::ranges::any_of(
      problem.topology.devices,
      [&](const Device &device) { return isCpu(problem.topology, device); });
}

int64_t neuroshard::devicesWithRows(int64_t rows, int64_t devices) {
  int64_t perDevice = (rows - 1) / devices + 1;
  return (rows - 1) / perDevice + 1;
}

bool neuroshard::columnsMustBeEqual(const ShardingProblem &problem, int table) {
  if (problem.target != Target::TorchRec19)
    return false;
  return std::ranges::any_of(problem.features, [&](const Feature &feature) {
    return feature.table == table && feature.pooling == Pooling::None;
  });
}

TargetCuts neuroshard::torchRecCuts(const ShardingProblem &problem, int index,
                                    int64_t minWidth) {
  const Table &table = problem.tables[static_cast<size_t>(index)];
  int deviceCount = problem.topology.deviceCount();
  TargetCuts cuts = {{ShardingKind::RowColumn}, minWidth};
  auto forbid = [&](ShardingKind kind) { cuts.forbidden.push_back(kind); };
  if (needsNormExchange(table.optimizer.kind, problem.optimizerSemantics, true))
    forbid(ShardingKind::ColumnWise);
  const std::vector<int> &groups = problem.topology.levels.back().groupSizes;
  auto filled = [&](int devices) {
    return devices == 1 || devicesWithRows(table.rows, devices) == devices;
  };
  if (everyDeviceNeedsRows(problem)) {
    if (!filled(deviceCount))
      forbid(ShardingKind::RowWise);
    if (!std::ranges::all_of(groups, filled))
      forbid(ShardingKind::TableRowWise);
  }
  // Row blocks inside the first group alone are table-row-wise.
  if (groups.size() > 1 &&
      devicesWithRows(table.rows, deviceCount) <= groups[0])
    forbid(ShardingKind::RowWise);
  if (!columnsMustBeEqual(problem, index))
    return cuts;
  // Halves only, since all column shards of the table must have one width.
  if (table.dim % (2 * kColumnAlignment) != 0 || minWidth > table.dim / 2)
    forbid(ShardingKind::ColumnWise);
  cuts.minWidth = std::max(minWidth, table.dim / 2);
  return cuts;
}

/// Row shards: block i of equal blocks on device `first` + i.
static bool areBlocks(const ShardingProblem &problem, const Table &table,
                      std::vector<const Shard *> shards, int first, int count) {
  int64_t blocks = devicesWithRows(table.rows, count);
  int64_t size = (table.rows - 1) / count + 1;
  if (everyDeviceNeedsRows(problem) && blocks != count)
    return false;
  std::ranges::sort(shards, {}, &Shard::rowBegin);
  int64_t next = 0;
  for (const Shard *shard : shards) {
    if (shard->rowBegin != next * size ||
        shard->devices.front() != first + static_cast<int>(next))
      return false;
    ++next;
  }
  return next == blocks;
}

static bool haveEqualWidths(const std::vector<const Shard *> &shards) {
  return std::ranges::all_of(shards, [&](const Shard *shard) {
    return shard->width() == shards.front()->width();
  });
}

static bool haveEqualWidthsPerDevice(const std::vector<const Shard *> &shards) {
  std::map<int, std::vector<const Shard *>> onDevice;
  for (const Shard *shard : shards)
    onDevice[shard->devices.front()].push_back(shard);
  return std::ranges::all_of(onDevice, [](const auto &entry) {
    return haveEqualWidths(entry.second);
  });
}

std::string
neuroshard::targetObjection(const ShardingProblem &problem, int index,
                            const std::vector<const Shard *> &shards) {
  const Table &table = problem.tables[static_cast<size_t>(index)];
  if (problem.target != Target::TorchRec19)
    return {};
  std::vector<int> groups = groupOfDevices(problem.topology.levels.back());
  ShardingKind kind = classify(table, shards, groups);
  bool cutsColumns = false;
  for (const Shard *shard : shards) {
    if (shard->width() % kColumnAlignment != 0)
      return "TorchRec needs widths that are multiples of 4";
    if (shard->tier != shards.front()->tier)
      return "TorchRec keeps all shards of a table in one tier";
    cutsColumns |= shard->width() < table.dim;
  }
  if (cutsColumns && problem.optimizerSemantics == OptimizerSemantics::Exact &&
      normsPerRow(table.optimizer.kind) > 0)
    return "TorchRec takes norms of rows for each column shard";
  if (kind == ShardingKind::RowColumn)
    return "TorchRec cuts rows or columns of a table, not both";
  if (kind == ShardingKind::ColumnWise) {
    bool equal = columnsMustBeEqual(problem, index)
                     ? haveEqualWidths(shards)
                     : haveEqualWidthsPerDevice(shards);
    return equal ? "" : "TorchRec needs columns of equal widths";
  }
  int first = 0, count = problem.topology.deviceCount();
  if (kind == ShardingKind::TableRowWise) {
    int group = groups[static_cast<size_t>(shards.front()->devices.front())];
    first = static_cast<int>(std::ranges::find(groups, group) - groups.begin());
    count = static_cast<int>(std::ranges::count(groups, group));
  } else if (kind != ShardingKind::RowWise) {
    return {};
  }
  if (!areBlocks(problem, table, shards, first, count))
    return "TorchRec cuts rows into equal blocks, one on each device";
  return {};
}
