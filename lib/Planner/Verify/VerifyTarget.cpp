//===- VerifyTarget.cpp - A target's rules on one table -------------------===//

#include "VerifyTarget.h"

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace neuroshard;

namespace {

class TorchRecRules {
public:
  TorchRecRules(const Table &table, const std::vector<const Shard *> &shards,
                Diagnostics &errors)
      : table(table), shards(shards), errors(errors) {}

  void checkWidths();
  void checkWidthsOnDevices();
  void checkEqualWidths();
  void checkTiers();
  void checkExactNorms();
  /// Are the shards equal row blocks, one on each device of
  /// [first, first + count)?
  void checkRowBlocks(int first, int count, const char *kind);
  void checkFilled(int count, const char *kind);
  void error(std::string message) {
    errors.push_back({"table '" + table.name + "'",
                      "target torchrec-1.9: " + std::move(message)});
  }

private:
  const Table &table;
  const std::vector<const Shard *> &shards;
  Diagnostics &errors;
};

void TorchRecRules::checkWidths() {
  for (const Shard *shard : shards)
    if (shard->width() % kColumnAlignment != 0)
      return error("widths must be multiples of 4, shard '" + shard->name +
                   "' has " + std::to_string(shard->width()));
}

/// TorchRec reads all shards of a device as rows of the first one's width.
void TorchRecRules::checkWidthsOnDevices() {
  std::map<int, const Shard *> firsts;
  for (const Shard *shard : shards) {
    int device = shard->devices.front();
    const Shard *first = firsts.try_emplace(device, shard).first->second;
    if (first->width() != shard->width())
      return error("column shards on one device must have equal widths; on "
                   "device " +
                   std::to_string(device) + " shard '" + first->name +
                   "' has " + std::to_string(first->width()) + ", '" +
                   shard->name + "' " + std::to_string(shard->width()));
  }
}

void TorchRecRules::checkEqualWidths() {
  for (const Shard *shard : shards)
    if (shard->width() != shards.front()->width())
      return error("column shards of a table without pooling must have equal "
                   "widths, '" +
                   shards.front()->name + "' has " +
                   std::to_string(shards.front()->width()) + ", '" +
                   shard->name + "' " + std::to_string(shard->width()));
}

void TorchRecRules::checkTiers() {
  for (const Shard *shard : shards)
    if (shard->tier != shards.front()->tier)
      return error("all shards of a table must be in one tier");
}

void TorchRecRules::checkExactNorms() {
  bool split = std::any_of(shards.begin(), shards.end(), [&](const Shard *s) {
    return s->width() != table.dim;
  });
  if (split && normsPerRow(table.optimizer.kind) > 0)
    error("column shards of " + std::string(toString(table.optimizer.kind)) +
          " take norms of their own columns alone; set optimizer_semantics = "
          "per_shard to accept that");
}

void TorchRecRules::checkFilled(int count, const char *kind) {
  if (blockCount(table.rows, count) < count)
    error(std::string(kind) + " on the CPU must give each of the " +
          std::to_string(count) + " devices rows; blocks of " +
          std::to_string((table.rows + count - 1) / count) + " leave some of " +
          "them none of the " + std::to_string(table.rows) + " rows");
}

void TorchRecRules::checkRowBlocks(int first, int count, const char *kind) {
  int64_t block = (table.rows + count - 1) / count;
  std::vector<const Shard *> sorted = shards;
  std::sort(sorted.begin(), sorted.end(),
            [](auto *a, auto *b) { return a->rowBegin < b->rowBegin; });
  int64_t blocks = (table.rows + block - 1) / block;
  if (static_cast<int64_t>(sorted.size()) != blocks)
    return error(std::string(kind) + " must be " + std::to_string(blocks) +
                 " blocks of ceil(rows / devices) = " + std::to_string(block) +
                 " rows, got " + std::to_string(sorted.size()) + " shards");
  for (size_t i = 0; i < sorted.size(); ++i) {
    int64_t begin = static_cast<int64_t>(i) * block;
    int device = first + static_cast<int>(i);
    if (sorted[i]->rowBegin != begin)
      return error(std::string(kind) + " block " + std::to_string(i) +
                   " must begin at row " + std::to_string(begin) + ", shard '" +
                   sorted[i]->name + "' begins at " +
                   std::to_string(sorted[i]->rowBegin));
    if (sorted[i]->devices.front() != device)
      return error(std::string(kind) + " block " + std::to_string(i) +
                   " must be on device " + std::to_string(device) +
                   ", shard '" + sorted[i]->name + "' is on " +
                   std::to_string(sorted[i]->devices.front()));
  }
}

} // namespace

bool neuroshard::needsRowsEverywhere(const ShardingProblem &problem) {
  const std::vector<Device> &devices = problem.topology.devices;
  return problem.target == Target::TorchRec19 &&
         std::any_of(devices.begin(), devices.end(), [&](const Device &device) {
           return isCpu(problem.topology, device);
         });
}

bool neuroshard::needsEqualColumns(const ShardingProblem &problem,
                                   const Table &table) {
  return problem.target == Target::TorchRec19 &&
         std::any_of(problem.features.begin(), problem.features.end(),
                     [&](const Feature &feature) {
                       size_t index = static_cast<size_t>(feature.table);
                       return feature.pooling == Pooling::None &&
                              problem.tables[index].name == table.name;
                     });
}

int64_t neuroshard::blockCount(int64_t rows, int64_t devices) {
  int64_t block = (rows + devices - 1) / devices;
  return (rows + block - 1) / block;
}

void neuroshard::verifyTarget(const ShardingProblem &problem,
                              const Table &table,
                              const std::vector<const Shard *> &shards,
                              const std::vector<int> &innerGroupOfDevice,
                              Diagnostics &errors) {
  if (problem.target != Target::TorchRec19)
    return;
  TorchRecRules rules(table, shards, errors);
  rules.checkWidths();
  rules.checkTiers();
  if (problem.optimizerSemantics == OptimizerSemantics::Exact)
    rules.checkExactNorms();
  auto checkBlocks = [&](int first, int count, const char *kind) {
    rules.checkRowBlocks(first, count, kind);
    if (needsRowsEverywhere(problem))
      rules.checkFilled(count, kind);
  };
  switch (classify(table, shards, innerGroupOfDevice)) {
  case ShardingKind::ColumnWise:
    return needsEqualColumns(problem, table) ? rules.checkEqualWidths()
                                             : rules.checkWidthsOnDevices();
  case ShardingKind::TableWise:
  case ShardingKind::Replicated:
    return;
  case ShardingKind::RowColumn:
    return rules.error("a table has one kind; rows and columns of one table "
                       "cannot both be split");
  case ShardingKind::RowWise:
    return checkBlocks(0, problem.topology.deviceCount(),
                       "row-wise over all devices");
  case ShardingKind::TableRowWise: {
    int group = innerGroupOfDevice[static_cast<size_t>(
        shards.front()->devices.front())];
    auto [first, last] = std::equal_range(innerGroupOfDevice.begin(),
                                          innerGroupOfDevice.end(), group);
    return checkBlocks(static_cast<int>(first - innerGroupOfDevice.begin()),
                       static_cast<int>(last - first),
                       "table-row-wise over one group");
  }
  }
}
