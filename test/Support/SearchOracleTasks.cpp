//===- SearchOracleTasks.cpp - Random problems with every constraint ------===//

#include "SearchOracle.h"
#include "neuroshard/Support/Random.h"

#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <random>

using namespace neuroshard;

namespace {

class Maker {
public:
  explicit Maker(uint64_t seed) : dice(seed * 0x9e3779b97f4a7c15u + 1) {}
  ShardingProblem make();

private:
  void addTopology();
  void addTable(int index);
  void addMemory();
  void addPlaces();
  void addSets();
  void addKinds();
  void addHandWritten();
  void addSnapshots();
  int anyTable() {
    return static_cast<int>(
        dice.between(0, static_cast<int64_t>(problem.tables.size()) - 1));
  }
  int anyDevice() {
    return static_cast<int>(
        dice.between(0, problem.topology.deviceCount() - 1));
  }
  std::vector<int> someDevices();

  MersenneTwister dice;
  ShardingProblem problem;
};

void Maker::addTopology() {
  const char *text = dice.chance(75)
                         ? dice.oneOf({"1xCPU", "2xCPU", "3xCPU", "4xCPU",
                                       "2x2xCPU", "1+2xCPU", "2xA100-40GB"})
                         : dice.oneOf({"5xCPU", "3+2xCPU", "3x2xCPU",
                                       "2x4xA100-40GB", "8xH200", "4x4xH200"});
  problem.topology = *parseTopology(text);
  if (dice.chance(15))
    problem.topology.devices.front().deviceClass =
        dice.oneOf({"CPU", "H200", "A100-40GB"});
  if (dice.chance(30))
    problem.constraints.reserves = {dice.between(0, 4000), std::nullopt, 0};
  problem.constraints.reserves.fragmentationBytes = 0;
  problem.constraints.reserves.communicatorBytes = dice.between(0, 1) * 1000;
  if (!problem.constraints.reserves.denseBytes)
    problem.constraints.reserves.denseBytes = 0;
}

void Maker::addTable(int index) {
  Table table;
  table.name = "t";
  table.name.append(std::to_string(index));
  table.rows = dice.chance(4) ? dice.between(1, 3) : dice.between(4, 3000);
  bool odd =
      problem.target == Target::Native ? dice.chance(20) : dice.chance(2);
  table.dim = odd ? dice.between(1, 18) : 4 * dice.between(1, 4);
  table.elementType =
      dice.oneOf({ElementType::F32, ElementType::F16, ElementType::BF16});
  table.optimizer.kind = dice.oneOf(
      {OptimizerKind::SGD, OptimizerKind::Adagrad, OptimizerKind::Adam,
       OptimizerKind::RowWiseAdagrad, OptimizerKind::RowWiseAdagrad});
  if (dice.chance(20))
    table.optimizer.weightDecay = 0.01;
  problem.tables.push_back(table);
  int64_t features = dice.chance(80) ? 1 : dice.between(0, 2);
  for (int64_t i = 0; i < features; ++i) {
    Feature feature;
    feature.name = table.name + "_f";
    feature.name.append(std::to_string(i));
    feature.table = index;
    feature.pooling = dice.oneOf({Pooling::Sum, Pooling::Mean, Pooling::None});
    feature.meanPooling = static_cast<double>(dice.between(0, 40)) / 4;
    if (dice.chance(30))
      feature.p99Pooling = feature.meanPooling + 1;
    feature.weighted = dice.chance(10);
    problem.features.push_back(feature);
  }
}

/// Draws device memory from too little to plenty, mostly close to the need of
/// the tables.
void Maker::addMemory() {
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  ShardingProblem summary = summarized(problem);
  double bytes = 0;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    Shard shard;
    shard.rowEnd = problem.tables[i].rows;
    shard.colEnd = problem.tables[i].dim;
    shard.devices = {0};
    bytes += static_cast<double>(
        shardMemory(summary, problem.tables[i], features[i], shard)
            .peakBytes());
  }
  Topology &topology = problem.topology;
  double share = static_cast<double>(dice.chance(60) ? dice.between(80, 140)
                                                     : dice.between(30, 500)) /
                 100 / topology.deviceCount();
  bool equal = dice.chance(60);
  for (int device = 0; device < topology.deviceCount(); ++device) {
    double weight =
        equal ? 1 : static_cast<double>(dice.between(20, 180)) / 100;
    topology.devices[static_cast<size_t>(device)].memoryBytes =
        deviceBaseMemory(summary)[static_cast<size_t>(device)].peakBytes() +
        static_cast<int64_t>(bytes * share * weight) + 1;
  }
  if (dice.chance(2))
    topology.devices.back().memoryBytes = 1;
  for (Host &host : topology.hosts)
    host.memoryBytes = dice.chance(50) ? static_cast<int64_t>(bytes) : 5000;
}

std::vector<int> Maker::someDevices() {
  std::vector<int> devices;
  for (int device = 0; device < problem.topology.deviceCount(); ++device)
    if (dice.chance(40))
      devices.push_back(device);
  if (devices.empty())
    devices.push_back(anyDevice());
  return devices;
}

void Maker::addPlaces() {
  Constraints &constraints = problem.constraints;
  if (dice.chance(25))
    constraints.pins.push_back({anyTable(), someDevices()});
  if (dice.chance(15))
    constraints.pins.push_back({anyTable(), {anyDevice()}});
  if (dice.chance(25) && problem.topology.deviceCount() > 1)
    constraints.forbids.push_back({anyTable(), {anyDevice()}});
}

void Maker::addSets() {
  int tables = static_cast<int>(problem.tables.size());
  Constraints &constraints = problem.constraints;
  if (tables < 2)
    return;
  int first = static_cast<int>(dice.between(0, tables - 2));
  if (dice.chance(15))
    constraints.coLocate.push_back({first, first + 1});
  first = static_cast<int>(dice.between(0, tables - 2));
  if (!dice.chance(20))
    return;
  std::vector<int> set = {first, first + 1};
  if (first + 2 < tables && dice.chance(40))
    set.push_back(first + 2);
  constraints.separate.push_back(set);
}

void Maker::addKinds() {
  constexpr ShardingKind kAll[] = {
      ShardingKind::TableWise, ShardingKind::ColumnWise,
      ShardingKind::RowWise,   ShardingKind::TableRowWise,
      ShardingKind::RowColumn, ShardingKind::Replicated};
  for (int table = 0; table < static_cast<int>(problem.tables.size());
       ++table) {
    if (!dice.chance(25))
      continue;
    TableConstraint constraint;
    constraint.table = table;
    constraint.minWidth = dice.oneOf<int64_t>({1, 1, 4, 8});
    int64_t kinds = dice.between(0, 3);
    for (int64_t i = 0; i < kinds; ++i) {
      ShardingKind kind = kAll[dice.between(0, 5)];
      if (std::count(constraint.allowedKinds.begin(),
                     constraint.allowedKinds.end(), kind) == 0)
        constraint.allowedKinds.push_back(kind);
    }
    problem.constraints.tables.push_back(constraint);
  }
}

void Maker::addHandWritten() {
  if (!dice.chance(15))
    return;
  const Table &table = problem.tables[static_cast<size_t>(anyTable())];
  Shard shard;
  shard.name = "hand";
  shard.table = table.name;
  shard.rowEnd = dice.chance(40) ? table.rows : dice.between(1, table.rows);
  shard.colEnd = table.dim > 4 && dice.chance(40) ? 4 : table.dim;
  shard.devices = {anyDevice()};
  bool whole = shard.rowEnd == table.rows && shard.colEnd == table.dim;
  if (whole && dice.chance(20)) {
    shard.devices.clear();
    for (int device = 0; device < problem.topology.deviceCount(); ++device)
      shard.devices.push_back(device);
  }
  if (whole && runsTier(problem.target, Tier::Dram) && dice.chance(30))
    shard.tier = Tier::Dram;
  problem.constraints.fixedShards.push_back(shard);
}

void Maker::addSnapshots() {
  if (!dice.chance(15) || problem.features.empty())
    return;
  for (int64_t i = 0; i < 2; ++i) {
    Snapshot snapshot;
    snapshot.name = "s";
    snapshot.name.append(std::to_string(i));
    snapshot.weight = static_cast<double>(dice.between(1, 5));
    FeatureStatistics statistics;
    statistics.feature = static_cast<int>(
        dice.between(0, static_cast<int64_t>(problem.features.size()) - 1));
    statistics.meanPooling = static_cast<double>(dice.between(0, 60)) / 4;
    snapshot.features.push_back(statistics);
    problem.snapshots.push_back(snapshot);
  }
}

ShardingProblem Maker::make() {
  problem.batch.globalSize = dice.between(1, 256);
  problem.batch.wireType =
      dice.oneOf({WireType(), WireType(WireFormat::BF16),
                  WireType(WireFormat::F32, WireFormat::BF16),
                  WireType(WireFormat::BF16, WireFormat::F32)});
  problem.batch.idType = dice.oneOf({IdType::I32, IdType::I64});
  problem.target = dice.chance(40) ? Target::TorchRec19 : Target::Native;
  problem.optimizerSemantics =
      dice.oneOf({OptimizerSemantics::Exact, OptimizerSemantics::PerShard});
  problem.memoryModel =
      dice.oneOf({MemoryModel::Full, MemoryModel::WeightsOnly});
  if (dice.chance(20))
    problem.cacheLoadFactor = 0.25;
  int tables = static_cast<int>(dice.chance(80) ? dice.between(1, 4)
                                                : dice.between(5, 8));
  for (int i = 0; i < tables; ++i)
    addTable(i);
  addTopology();
  addPlaces();
  addSets();
  addKinds();
  addHandWritten();
  addSnapshots();
  addMemory();
  return problem;
}

} // namespace

ShardingProblem neuroshard::randomProblem(uint64_t seed) {
  return Maker(seed).make();
}
