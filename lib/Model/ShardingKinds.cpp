//===- ShardingKinds.cpp - Sharding kind of a table's shards --------------===//

#include "neuroshard/Model/ShardingPlan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

using namespace neuroshard;

static bool insideOneGroup(const std::vector<const Shard *> &shards,
                           const std::vector<int> &groupOfDevice) {
  int first = -1;
  for (const Shard *shard : shards)
    for (int device : shard->devices) {
      int group = groupOfDevice[static_cast<size_t>(device)];
      if (first >= 0 && group != first)
        return false;
      first = group;
    }
  return true;
}

std::optional<WireType> neuroshard::chosenWireType(const ShardingPlan &plan) {
  const auto &settings = plan.provenance.settings;
  auto find = [&](std::string_view key) {
    return std::ranges::find(settings, key, [](const auto &setting) {
      return std::string_view(setting.first);
    });
  };
  auto type = find(kWireType);
  return find(kWireTypes) == settings.end() || type == settings.end()
             ? std::nullopt
             : parseWireType(type->second);
}

bool neuroshard::isWholeOnAll(const Table &table, const Shard &shard,
                              int deviceCount) {
  return isWholeOnAll({shard.rows(), shard.width()}, {table.rows, table.dim},
                      static_cast<int64_t>(shard.devices.size()), deviceCount);
}

bool neuroshard::isReplicated(const Table &table, const Shard &shard,
                              int deviceCount) {
  return isWholeOnAll(table, shard, deviceCount) && !shard.copiesDrift();
}

bool neuroshard::isCopied(const Table &table, const Shard &shard,
                          int deviceCount) {
  return shard.hasCopies() && !isReplicated(table, shard, deviceCount);
}

ShardingKind neuroshard::classify(const Table &table,
                                  const std::vector<const Shard *> &shards,
                                  const std::vector<int> &innerGroupOfDevice) {
  auto all = [&](auto predicate) {
    return std::all_of(shards.begin(), shards.end(), predicate);
  };
  if (!all([](const Shard *s) { return !s->hasCopies(); }))
    return ShardingKind::Replicated;
  bool fullRows = all([&](const Shard *s) { return s->rows() == table.rows; });
  bool fullWidth = all([&](const Shard *s) { return s->width() == table.dim; });
  if (fullRows && fullWidth)
    return ShardingKind::TableWise;
  if (fullRows)
    return ShardingKind::ColumnWise;
  if (!fullWidth)
    return ShardingKind::RowColumn;
  bool severalGroups =
      !innerGroupOfDevice.empty() && innerGroupOfDevice.back() > 0;
  return severalGroups && insideOneGroup(shards, innerGroupOfDevice)
             ? ShardingKind::TableRowWise
             : ShardingKind::RowWise;
}

bool neuroshard::isColumnSplit(const Table &table,
                               std::span<const Shard> shards) {
  return std::ranges::any_of(
      shards, [&](const Shard &shard) { return shard.width() != table.dim; });
}

std::vector<bool>
neuroshard::columnSplitTables(const std::vector<Table> &tables,
                              std::span<const Shard> shards) {
  std::unordered_map<std::string_view, size_t> indices;
  for (size_t i = 0; i < tables.size(); ++i)
    indices.emplace(tables[i].name, i);
  std::vector<bool> split(tables.size());
  for (const Shard &shard : shards)
    if (auto found = indices.find(shard.table);
        found != indices.end() &&
        isColumnSplit(tables[found->second], {&shard, 1}))
      split[found->second] = true;
  return split;
}

bool neuroshard::needsNormExchange(const Table &table,
                                   OptimizerSemantics semantics,
                                   std::span<const Shard> shards) {
  return needsNormExchange(table.optimizer.kind, semantics,
                           isColumnSplit(table, shards));
}
