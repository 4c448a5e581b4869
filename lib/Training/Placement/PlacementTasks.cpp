//===- PlacementTasks.cpp - Random tasks for placement policies -----------===//

#include "neuroshard/Training/PlacementTasks.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Support/Random.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

using namespace neuroshard;

namespace {

constexpr double kMostOfDevice = 0.9;

class Maker {
public:
  Maker(const PlacementTaskSettings &settings, uint64_t seed)
      : settings(settings), random(seed) {}

  Expected<PlacementExample> make();

private:
  int between(int low, int high) {
    return low + static_cast<int>(random.below(static_cast<size_t>(high) -
                                               static_cast<size_t>(low) + 1));
  }
  double between(double low, double high) {
    return low + (high - low) * random.uniform();
  }
  double normal() {
    double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    return radius * std::cos(2 * std::numbers::pi * random.uniform());
  }
  AccessStatistics access();
  std::string shape(std::string_view deviceClass);
  void addTable(double logPooling, double poolingSpread, bool knownAccess,
                OptimizerKind kind);
  void addTables();
  void setMemory(int devices);

  const PlacementTaskSettings &settings;
  MersenneTwister random;
  PlacementExample example;
};

/// One node, or two of which the second may be smaller.
std::string Maker::shape(std::string_view deviceClass) {
  int devices = between(settings.minDevices, settings.maxDevices);
  std::string text = std::to_string(devices);
  if (devices > 1 && random.below(3) == 0) {
    int first = (devices + 1) / 2;
    text = std::to_string(first) + "+" + std::to_string(devices - first);
  }
  return text + "x" + std::string(deviceClass);
}

/// Shares that fall from bin to bin, faster or slower.
AccessStatistics Maker::access() {
  AccessStatistics access;
  access.batch = example.problem.batch.globalSize;
  double ratio = between(0.2, 0.8), share = 1, sum = 0;
  for (double &bin : access.reuse) {
    bin = share;
    sum += share;
    share *= ratio;
  }
  for (double &bin : access.reuse)
    bin /= sum;
  return access;
}

void Maker::addTable(double logPooling, double poolingSpread, bool knownAccess,
                     OptimizerKind kind) {
  ShardingProblem &problem = example.problem;
  Table table;
  table.name = std::string("t").append(std::to_string(problem.tables.size()));
  table.rows = static_cast<int64_t>(std::pow(10, between(2.0, 7.0)));
  table.dim = random.below(2) ? 4 * between(1, 32) : 4 << between(0, 5);
  table.optimizer.kind = kind;
  if (knownAccess)
    table.access = access();
  Feature feature;
  feature.name = table.name + "_id";
  feature.table = static_cast<int>(problem.tables.size());
  double pooling = std::exp(logPooling + poolingSpread * normal());
  feature.meanPooling = std::clamp(std::round(8 * pooling) / 8, 0.125, 500.0);
  problem.tables.push_back(std::move(table));
  problem.features.push_back(std::move(feature));
}

void Maker::addTables() {
  constexpr std::array<OptimizerKind, 3> kDrawnOptimizers = {
      OptimizerKind::SGD, OptimizerKind::Adagrad,
      OptimizerKind::RowWiseAdagrad};
  // As many small tasks as large ones, by orders of magnitude.
  int tables = static_cast<int>(
      std::round(std::exp(between(std::log(settings.minTables * 1.0),
                                  std::log(settings.maxTables * 1.0)))));
  double logPooling = between(0.0, std::log(20.0));
  double spread = between(0.3, 1.8);
  bool knownAccess = random.below(2) == 0;
  OptimizerKind kind = kDrawnOptimizers[random.below(kDrawnOptimizers.size())];
  for (int i = 0; i < tables; ++i)
    addTable(logPooling, spread, knownAccess, kind);
}

/// Weights alone count; tables that a device could hardly hold lose half their
/// rows.
void Maker::setMemory(int devices) {
  ShardingProblem &problem = example.problem;
  double fill = between(settings.minFill, settings.maxFill);
  auto bytes = [](const Table &table) {
    return static_cast<double>(table.rows) *
           static_cast<double>(rowBytes(table.dim, table.elementType));
  };
  double capacity = 0;
  for (bool again = true; again;) {
    again = false;
    double total = 0;
    for (const Table &table : problem.tables)
      total += bytes(table);
    double mean = total / static_cast<double>(problem.tables.size());
    capacity = std::max(total / fill / devices, 1.5 * mean);
    for (Table &table : problem.tables)
      if (table.rows > 1 && bytes(table) > kMostOfDevice * capacity) {
        table.rows /= 2;
        again = true;
        break;
      }
  }
  for (Device &device : problem.topology.devices)
    device.memoryBytes = static_cast<int64_t>(capacity);
}

Expected<PlacementExample> Maker::make() {
  constexpr std::array<std::string_view, 2> kClasses = {"H200", "A100-40GB"};
  const std::string &name =
      settings.costModels[random.below(settings.costModels.size())];
  bool trained = name.ends_with(".safetensors");
  ShardingProblem &problem = example.problem;
  Expected<Topology> topology = parseTopology(
      shape(trained ? kCpuClass : kClasses[random.below(kClasses.size())]));
  if (!topology)
    return tl::unexpected(topology.error());
  problem.topology = std::move(*topology);
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = int64_t{1024} << between(trained ? 0 : 2, 6);
  addTables();
  setMemory(problem.topology.deviceCount());
  Expected<std::unique_ptr<CostModel>> model =
      makeCostModel(name, problem.topology);
  if (!model)
    return tl::unexpected(model.error());
  example.model = std::move(*model);
  bool step = example.model->separatesBackward() && random.below(4) > 0;
  example.objective.kind =
      step ? ObjectiveKind::Step : ObjectiveKind::Published;
  return std::move(example);
}

} // namespace

Diagnostics neuroshard::check(const PlacementTaskSettings &settings) {
  Diagnostics errors;
  auto brackets = [](double low, double high) {
    return "[" + shortestText(low) + ", " + shortestText(high) + "]";
  };
  auto range = [&](const char *what, double low, double high, double least,
                   double most) {
    if (!(low >= least && low <= high && high <= most))
      errors.push_back({what, "expected a range within " +
                                  brackets(least, most) +
                                  ", got: " + brackets(low, high)});
  };
  range("tables", settings.minTables, settings.maxTables, 1, 100000);
  range("devices", settings.minDevices, settings.maxDevices, 1, 4096);
  range("fill", settings.minFill, settings.maxFill, 1e-6, 1);
  if (settings.costModels.empty())
    errors.push_back({"cost_models", "expected at least one"});
  return errors;
}

Expected<PlacementExample>
neuroshard::randomPlacementExample(const PlacementTaskSettings &settings,
                                   uint64_t seed) {
  return Maker(settings, seed).make();
}

Expected<std::vector<PlacementExample>>
neuroshard::randomPlacementExamples(const PlacementTaskSettings &settings,
                                    uint64_t seed, int count) {
  std::vector<PlacementExample> examples;
  for (int i = 0; i < count; ++i) {
    Expected<PlacementExample> example =
        randomPlacementExample(settings, seed + static_cast<uint64_t>(i));
    if (!example)
      return tl::unexpected(example.error());
    examples.push_back(std::move(*example));
  }
  return examples;
}
