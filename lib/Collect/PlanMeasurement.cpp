//===- PlanMeasurement.cpp - Compares predicted and measured plans --------===//

#include "neuroshard/Collect/PlanMeasurement.h"

#include "ReferenceKernel.h"
#include "neuroshard/CostModel/ComputeFeatures.h"
#include "neuroshard/CostModel/DriftCorrection.h"
#include "neuroshard/Model/StoredBytes.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace neuroshard;
using namespace neuroshard::collect;

namespace {

constexpr int64_t kMaxRows = 1000000;
constexpr int64_t kBatch = 1024;
constexpr double kMemorySlack = 1.3;

MeasuredSet setOfDevice(const ShardingProblem &problem,
                        const ShardingPlan &plan, int device) {
  MeasuredSet set;
  set.problem = problem;
  for (const Shard &shard : plan.shards)
    if (std::find(shard.devices.begin(), shard.devices.end(), device) !=
        shard.devices.end())
      set.shards.push_back(shard);
  return set;
}

class PlanMeasurer {
public:
  PlanMeasurer(const PlanMeasurementOptions &options, const CostModel &model)
      : options(options), model(model), pool(makeTablePool(kPoolSeed)),
        measurer(options.measure) {}

  Expected<void> measureTask(int task, int devices);
  std::vector<MeasuredPlan> finish();

private:
  Expected<void> measurePlan(const ShardingProblem &problem,
                             const ShardingPlan &plan, MeasuredPlan &result);

  const PlanMeasurementOptions &options;
  const CostModel &model;
  TablePool pool;
  Measurer measurer;
  ReferenceKernel reference{measurer};
  std::vector<MeasuredPlan> plans;
  std::vector<double> referenceMs; ///< one for each plan.
};

Expected<void> PlanMeasurer::measurePlan(const ShardingProblem &problem,
                                         const ShardingPlan &plan,
                                         MeasuredPlan &result) {
  Expected<double> before = reference.measureMs();
  if (!before)
    return tl::unexpected(before.error());
  for (int device = 0; device < problem.topology.deviceCount(); ++device) {
    MeasuredSet set = setOfDevice(problem, plan, device);
    if (set.shards.empty()) {
      result.measured.push_back({});
      continue;
    }
    Expected<Timing> timing = measurer.measure(set);
    if (!timing)
      return tl::unexpected(timing.error());
    result.measured.push_back(timing->median);
  }
  Expected<double> after = reference.measureMs();
  if (!after)
    return tl::unexpected(after.error());
  referenceMs.push_back(0.5 * (*before + *after));
  return {};
}

Expected<void> PlanMeasurer::measureTask(int task, int devices) {
  ShardingProblem problem = makePlanTask(
      pool, options.seed * 1000 + static_cast<uint64_t>(task), devices);
  for (Algorithm algorithm : allAlgorithms()) {
    if (algorithm == Algorithm::DreamShard && !options.policy)
      continue;
    SearchOptions settings;
    settings.algorithm = algorithm;
    settings.policy = options.policy;
    auto found = search(problem, model, settings);
    if (!found && found.error().limit == Limit::BadInput)
      return failure("task " + std::to_string(task), found.error().str());
    if (!found)
      continue;
    MeasuredPlan plan;
    plan.task = task;
    plan.devices = devices;
    plan.algorithm = algorithm;
    plan.predicted = found->breakdown;
    if (Expected<void> done = measurePlan(problem, found->plan, plan); !done)
      return done;
    plans.push_back(std::move(plan));
  }
  return {};
}

/// Scales each plan's times to the machine's usual speed.
std::vector<MeasuredPlan> PlanMeasurer::finish() {
  std::vector<double> factors = driftFactors(referenceMs);
  for (size_t i = 0; i < plans.size(); ++i)
    for (ComputeMs &time : plans[i].measured)
      time = {time.forwardMs * factors[i], time.backwardMs * factors[i]};
  return std::move(plans);
}

} // namespace

ShardingProblem neuroshard::makePlanTask(const TablePool &pool, uint64_t seed,
                                         int devices) {
  std::mt19937_64 random(seed);
  auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  ShardingProblem problem;
  problem.source = "plan task " + std::to_string(seed);
  problem.batch.globalSize = kBatch;
  problem.optimizerSemantics = OptimizerSemantics::PerShard;
  problem.constraints.reserves = {0, 0, 0};
  Optimizer optimizer;
  optimizer.kind = kPricedOptimizers[static_cast<size_t>(
      between(0, static_cast<int64_t>(kPricedOptimizers.size()) - 1))];
  std::vector<size_t> indices(pool.tables.size());
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = i;
  std::shuffle(indices.begin(), indices.end(), random);
  indices.resize(static_cast<size_t>(between(10, 40)));
  int64_t bytes = 0;
  for (size_t index : indices) {
    Table table;
    table.name = std::to_string(index);
    table.rows = std::min(pool.tables[index].rows, kMaxRows);
    table.dim = 4 * between(1, 32);
    table.optimizer = optimizer;
    table.access = (*pool.access)[index];
    bytes += static_cast<int64_t>(storedBytes(table));
    Feature feature;
    feature.name = table.name;
    feature.table = static_cast<int>(problem.tables.size());
    feature.meanPooling = pool.tables[index].pooling;
    problem.constraints.tables.push_back(
        {.table = feature.table,
         .allowedKinds = {ShardingKind::TableWise, ShardingKind::ColumnWise,
                          ShardingKind::RowWise, ShardingKind::RowColumn}});
    problem.tables.push_back(std::move(table));
    problem.features.push_back(std::move(feature));
  }
  // Beside its share of the tables, a device holds the batch.
  int64_t perDevice =
      (int64_t{256} << 20) +
      static_cast<int64_t>(kMemorySlack * static_cast<double>(bytes) / devices);
  problem.topology = *parseTopology(std::to_string(devices) + "xCPU@" +
                                    std::to_string(perDevice) + "B");
  return problem;
}

Expected<std::vector<MeasuredPlan>> neuroshard::measurePlans(
    const PlanMeasurementOptions &options, const CostModel &model,
    const std::atomic<bool> &stop,
    const std::function<void(int done, int all)> &progress) {
  PlanMeasurer measurer(options, model);
  int all = options.tasks * static_cast<int>(options.devices.size()), done = 0;
  for (int task = 0; task < options.tasks; ++task)
    for (int devices : options.devices) {
      if (stop)
        return measurer.finish();
      progress(done++, all);
      if (Expected<void> measured = measurer.measureTask(task, devices);
          !measured)
        return tl::unexpected(measured.error());
    }
  return measurer.finish();
}
