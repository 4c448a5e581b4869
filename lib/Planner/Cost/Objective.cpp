//===- Objective.cpp - Cost of a step from compute and exchanges ----------===//

#include "neuroshard/Planner/Objective.h"

#include "FetchRates.h"
#include "ForwardModel.h"
#include "IdMaps.h"
#include "RelayLoads.h"
#include "RowDemands.h"
#include "StagedExchange.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Traffic.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

using namespace neuroshard;

namespace {

double largest(const std::vector<double> &values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double publishedCost(std::span<const DeviceLoad> loads, StagedExchange results,
                     StagedExchange gradients, CostBreakdown &breakdown) {
  std::vector<double> backward = gradients.timesMs();
  std::vector<double> skews(loads.size());
  for (size_t i = 0; i < loads.size(); ++i)
    skews[i] = loads[i].compute.total() + backward[i];
  double first = *std::min_element(skews.begin(), skews.end());
  for (double &skew : skews)
    skew -= first;
  std::vector<double> forward = results.timesMs(skews);
  double cost = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    DeviceCost &device = breakdown.devices[i];
    device.backwardCommunicationMs = backward[i];
    device.forwardCommunicationMs = forward[i];
    cost = std::max(cost, loads[i].compute.total() + backward[i] + forward[i]);
  }
  return cost;
}

/// How long each device looks up what goes by relay.
std::vector<double> relayedLookupsMs(std::span<const DeviceLoad> loads,
                                     std::span<const RelayLoad> relays) {
  std::vector<double> times;
  for (size_t i = 0; i < relays.size(); ++i) {
    double all = loads[i].lookupValues;
    times.push_back(all > 0 ? loads[i].compute.forwardMs *
                                  std::min(1.0, relays[i].lookupValues / all)
                            : 0);
  }
  return times;
}

/// How long a device updates what waits for sums of rows.
double lateUpdatesMs(const DeviceLoad &load) {
  return load.updateValues > 0
             ? load.compute.backwardMs *
                   std::min(1.0, load.lateUpdateValues / load.updateValues)
             : 0;
}

/// Exchanges of a direction beyond the first: TorchRec has one for each
/// sharding type.
double furtherExchanges(std::span<const DeviceLoad> loads) {
  double forms = 0;
  for (size_t form = 0; form < ShardWork::kNumForms; ++form)
    forms += std::ranges::any_of(loads, [&](const DeviceLoad &load) {
      return load.exchangedForms[form] > 1e-6;
    });
  return std::max(0.0, forms - 1);
}

/// What an exchange takes beside its bytes: that of a byte each.
double exchangeOfByteMs(const CostModel &model, const Topology &topology,
                        Direction direction) {
  std::vector<double> none(topology.devices.size());
  std::vector<double> bytes(topology.devices.size(), 1.0);
  Traffic traffic{&topology, none, bytes, bytes};
  return largest(model.communicationMs(traffic, {}, direction));
}

double stepCost(const Topology &topology, std::span<const DeviceLoad> loads,
                std::span<const RelayLoad> relays, StagedExchange ids,
                StagedExchange results, StagedExchange gradients,
                const CostModel &model, const ObjectiveOptions &options,
                CostBreakdown &breakdown) {
  std::vector<double> input = ids.timesMs();
  std::vector<double> forward = results.timesMs();
  std::vector<double> backward = gradients.timesMs();
  double further = furtherExchanges(loads);
  auto furtherMs = [&](Direction direction) {
    return further > 0 ? further * exchangeOfByteMs(model, topology, direction)
                       : 0;
  };
  double furtherInputMs = furtherMs(Direction::Input);
  double furtherForwardMs = furtherMs(Direction::Forward);
  double furtherBackwardMs = furtherMs(Direction::Backward);
  for (size_t i = 0; i < loads.size(); ++i) {
    DeviceCost &device = breakdown.devices[i];
    device.inputMs = input[i] + furtherInputMs;
    device.forwardCommunicationMs = forward[i] + furtherForwardMs;
    device.backwardCommunicationMs = backward[i] + furtherBackwardMs;
    breakdown.maxForwardMs =
        std::max(breakdown.maxForwardMs, loads[i].compute.forwardMs);
    breakdown.maxBackwardMs =
        std::max(breakdown.maxBackwardMs, loads[i].compute.backwardMs);
  }
  // A device looks up, sends its results, those of relays piece by piece, and
  // waits for those of all others.
  std::vector<double> starts;
  for (const DeviceLoad &load : loads)
    starts.push_back(load.compute.forwardMs);
  double resultsMs =
      largest(results.arrivalsMs(starts, relayedLookupsMs(loads, relays))) +
      furtherForwardMs;
  breakdown.exposedForwardCommunicationMs =
      std::max(0.0, resultsMs - breakdown.maxForwardMs - options.denseBottomMs);
  breakdown.denseMs = options.denseBottomMs + options.denseRestMs;
  // It updates once it has its own gradients, and copies once it has the sums
  // of their rows.
  std::fill(starts.begin(), starts.end(), furtherBackwardMs);
  std::vector<double> updates = gradients.arrivalsMs(starts);
  std::vector<double> sums = gradients.sumArrivalsMs(updates);
  double gradientsMs = largest(sums);
  for (size_t i = 0; i < loads.size(); ++i) {
    double lateMs = lateUpdatesMs(loads[i]);
    updates[i] =
        std::max(updates[i] + loads[i].compute.backwardMs - lateMs, sums[i]) +
        lateMs;
  }
  double averagesMs = gradients.averagesMs();
  breakdown.backwardCommunicationMs =
      largest(updates) + averagesMs - breakdown.maxBackwardMs;
  // Rows of the next batch come from when gradients are sent.
  std::vector<double> fetch =
      fetchTimesMs(topology, loads, model.devicesEach());
  for (size_t i = 0; i < loads.size(); ++i)
    breakdown.devices[i].fetchMs = fetch[i];
  bool isAhead = options.pipelineDepth > 1 && loads.size() > 1;
  breakdown.fetchMs =
      std::max(0.0, largest(fetch) - (isAhead ? largest(updates) : 0));
  breakdown.fixedMs = model.fixedStepMs();
  double withoutInput =
      breakdown.fixedMs + breakdown.fetchMs + breakdown.maxForwardMs +
      breakdown.exposedForwardCommunicationMs + breakdown.denseMs +
      breakdown.backwardCommunicationMs + breakdown.maxBackwardMs;
  breakdown.inputMs = largest(input) + furtherInputMs;
  // Those of the next batch are sent when results are there, and travel during
  // dense work and updates; gradients have the same links. Relays hand them out
  // in the next step.
  if (options.pipelineDepth > 1) {
    double handedOutMs = ids.laterStagesMs();
    breakdown.inputMs =
        handedOutMs +
        std::max(0.0, breakdown.inputMs - handedOutMs + gradientsMs -
                          options.denseRestMs - largest(updates));
  }
  return breakdown.inputMs + withoutInput;
}

/// The widest of the devices' classes; not known if one's is not.
PredictionInterval computeInterval(const Topology &topology,
                                   const CostModel &model) {
  PredictionInterval widest;
  const std::string *last = nullptr;
  for (const Device &device : topology.devices) {
    if (last && *last == device.deviceClass)
      continue;
    const DeviceClass *deviceClass =
        findDeviceClass(topology, device.deviceClass);
    PredictionInterval one = deviceClass ? model.computeInterval(*deviceClass)
                                         : PredictionInterval{};
    if (!one.isKnown())
      return {};
    widest = last ? PredictionInterval{std::min(widest.low, one.low),
                                       std::max(widest.high, one.high)}
                  : one;
    last = &device.deviceClass;
  }
  return widest;
}

} // namespace

CostBreakdown neuroshard::composeCost(const Topology &topology,
                                      std::span<const DeviceLoad> loads,
                                      const CostModel &model,
                                      const ObjectiveOptions &options,
                                      std::span<const RelayLoad> relays) {
  CostBreakdown breakdown;
  breakdown.devices.resize(loads.size());
  for (size_t i = 0; i < loads.size(); ++i) {
    breakdown.devices[i].compute = loads[i].compute;
    breakdown.devices[i].forwardBytes = loads[i].forwardBytes;
    breakdown.devices[i].backwardBytes = loads[i].backwardBytes;
  }
  if (loads.empty())
    return breakdown;
  auto exchange = [&](Direction direction) {
    return StagedExchange(model, topology, loads, relays, direction);
  };
  breakdown.costMs =
      options.kind == ObjectiveKind::Published
          ? publishedCost(loads, exchange(Direction::Forward),
                          exchange(Direction::Backward), breakdown)
          : stepCost(topology, loads, relays, exchange(Direction::Input),
                     exchange(Direction::Forward),
                     exchange(Direction::Backward), model, options, breakdown);
  if (options.kind == ObjectiveKind::Step) {
    PredictionInterval interval = model.stepInterval();
    breakdown.lowMs = interval.low * breakdown.costMs;
    breakdown.highMs = interval.high * breakdown.costMs;
  }
  return breakdown;
}

double CostBreakdown::worstMs() const {
  double worst = snapshots.empty() ? costMs : 0;
  for (const SnapshotCost &snapshot : snapshots)
    worst = std::max(worst, snapshot.costMs);
  return worst;
}

/// sum += share x one.
static void addShare(CostBreakdown &sum, const CostBreakdown &one,
                     double share) {
  sum.computeInterval = one.computeInterval;
  sum.communicationInterval = one.communicationInterval;
  for (double CostBreakdown::*part :
       {&CostBreakdown::costMs, &CostBreakdown::inputMs,
        &CostBreakdown::fetchMs, &CostBreakdown::maxForwardMs,
        &CostBreakdown::exposedForwardCommunicationMs, &CostBreakdown::denseMs,
        &CostBreakdown::backwardCommunicationMs, &CostBreakdown::maxBackwardMs,
        &CostBreakdown::fixedMs, &CostBreakdown::lowMs, &CostBreakdown::highMs})
    sum.*part += share * one.*part;
  if (sum.caches.empty())
    for (const CacheCost &cache : one.caches)
      sum.caches.push_back({cache.shard});
  for (size_t i = 0; i < one.caches.size(); ++i) {
    sum.caches[i].rows += share * one.caches[i].rows;
    sum.caches[i].hits += share * one.caches[i].hits;
  }
  sum.devices.resize(one.devices.size());
  for (size_t i = 0; i < one.devices.size(); ++i) {
    DeviceCost &to = sum.devices[i];
    const DeviceCost &from = one.devices[i];
    to.compute.forwardMs += share * from.compute.forwardMs;
    to.compute.backwardMs += share * from.compute.backwardMs;
    for (double DeviceCost::*part :
         {&DeviceCost::inputMs, &DeviceCost::forwardCommunicationMs,
          &DeviceCost::backwardCommunicationMs, &DeviceCost::fetchMs,
          &DeviceCost::forwardBytes, &DeviceCost::backwardBytes})
      to.*part += share * from.*part;
  }
}

static CostBreakdown evaluateSnapshots(const ShardingProblem &problem,
                                       const ShardingPlan &plan,
                                       const CostModel &model,
                                       const ObjectiveOptions &options) {
  CostBreakdown mean;
  std::vector<double> shares = snapshotShares(problem);
  for (size_t i = 0; i < shares.size(); ++i) {
    CostBreakdown one = evaluate(atSnapshot(problem, i), plan, model, options);
    addShare(mean, one, shares[i]);
    mean.snapshots.push_back(
        {problem.snapshots[i].name, shares[i], one.costMs});
  }
  return mean;
}

static void addCopies(const Shard &shard, std::vector<ShardWork> copies,
                      PlanWork &work) {
  std::vector<int> devices = shard.devices;
  std::ranges::sort(devices);
  work.works.push_back(copies.front());
  for (size_t i = 0; i < devices.size(); ++i) {
    work.copies.push_back(copies[i]);
    work.sets[static_cast<size_t>(devices[i])].shards.push_back(
        &work.copies.back());
  }
}

PlanWork neuroshard::describePlan(const ShardingProblem &problem,
                                  const ShardingPlan &plan) {
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::unordered_map<std::string_view, int> tableOfName;
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, static_cast<int>(i));
  RowDemands demands(problem, features);
  PlanWork work;
  for (const Device &device : problem.topology.devices)
    work.sets.push_back(
        {findDeviceClass(problem.topology, device.deviceClass), {}});
  std::vector<bool> columnSplit =
      columnSplitTables(problem.tables, plan.shards);
  for (const Shard &shard : plan.shards) {
    int table = tableOfName.at(shard.table);
    size_t index = static_cast<size_t>(table);
    bool norms =
        needsNormExchange(problem.tables[index].optimizer.kind,
                          problem.optimizerSemantics, columnSplit[index]);
    if (isCopied(problem.tables[index], shard,
                 problem.topology.deviceCount())) {
      addCopies(shard,
                describeCopies(problem, table, features[index], shard, norms),
                work);
      continue;
    }
    work.works.push_back(
        describeShard(problem, table, features[index], shard, norms, &demands));
    for (int device : shard.devices)
      work.sets[static_cast<size_t>(device)].shards.push_back(
          &work.works.back());
  }
  return work;
}

static std::vector<DeviceLoad> loadsOf(const ShardingProblem &problem,
                                       const ShardingPlan &plan,
                                       const PlanWork &work,
                                       const CostModel &model) {
  size_t devices = work.sets.size();
  std::vector<DeviceLoad> loads(devices);
  for (size_t d = 0; d < devices; ++d)
    for (const ShardWork *shard : work.sets[d].shards)
      addLoads(loads[d], loadOf(*shard), 1);
  std::vector<ComputeMs> compute(devices);
  model.computeMs(work.sets, compute);
  for (size_t d = 0; d < devices; ++d)
    loads[d].compute = compute[d];
  if (int groupSize = relayGroupSize(problem)) {
    std::vector<OwnedRows> owned;
    std::deque<std::vector<int>> copies;
    for (size_t i = 0; i < plan.shards.size(); ++i) {
      const Shard &shard = plan.shards[i];
      const std::vector<int> *all = nullptr;
      if (shard.hasCopies() && work.works[i].normBytes == 0)
        continue;
      if (shard.hasCopies()) {
        std::ranges::sort(copies.emplace_back(shard.devices));
        all = &copies.back();
      }
      for (int device : shard.devices)
        owned.push_back({work.works[i].table,
                         device,
                         {shard.rowBegin, shard.rowEnd},
                         work.works[i].groupInputBytes,
                         work.works[i].normBytes,
                         all});
    }
    shareInGroups(groupSize, std::move(owned), loads);
  }
  return loads;
}

std::vector<DeviceLoad> neuroshard::planLoads(const ShardingProblem &problem,
                                              const ShardingPlan &plan,
                                              const CostModel &model) {
  return loadsOf(problem, plan, describePlan(problem, plan), model);
}

static std::vector<CacheCost> describeCaches(const ShardingProblem &problem,
                                             const ShardingPlan &plan,
                                             const PlanWork &work) {
  std::vector<CacheCost> caches;
  for (size_t i = 0; i < plan.shards.size(); ++i)
    if (hasRowCache(problem.target, plan.shards[i].tier)) {
      const CacheUse &use = work.works[i].cacheUse;
      caches.push_back({plan.shards[i].name, use.rows, use.hits});
    }
  return caches;
}

CostBreakdown neuroshard::evaluate(const ShardingProblem &problem,
                                   const ShardingPlan &plan,
                                   const CostModel &given,
                                   const ObjectiveOptions &options) {
  if (hasDynamicIds(problem))
    return evaluate(withoutIdMaps(problem), plan,
                    LongerSteps(given, idMapsCost(problem, given).totalMs()),
                    options);
  if (!problem.snapshots.empty())
    return evaluateSnapshots(problem, plan, given, options);
  ModelOfMode ofMode(problem, given);
  const CostModel &model = *ofMode;
  PlanWork work = describePlan(problem, plan);
  std::vector<DeviceLoad> loads = loadsOf(problem, plan, work, model);
  std::vector<RelayLoad> relays = relayLoads(problem, plan.shards, loads);
  CostBreakdown breakdown =
      composeCost(problem.topology, loads, model, options, relays);
  breakdown.computeInterval = computeInterval(problem.topology, model);
  breakdown.communicationInterval = model.communicationInterval();
  breakdown.caches = describeCaches(problem, plan, work);
  if (problem.target != Target::Native)
    return breakdown;
  DeviceTraffic traffic = planDeviceTraffic(problem, plan.shards);
  for (size_t d = 0; d < loads.size(); ++d) {
    breakdown.devices[d].forwardBytes = static_cast<double>(traffic.forward[d]);
    breakdown.devices[d].backwardBytes =
        static_cast<double>(traffic.backward[d]);
  }
  return breakdown;
}

Diagnostics neuroshard::checkMode(const ShardingProblem &problem,
                                  const CostModel &model) {
  if (problem.mode == StepMode::Training || model.separatesBackward())
    return {};
  return {{"mode", "cost model '" + model.name() +
                       "' gives one number for forward and backward, which is "
                       "not that of inference"}};
}

Diagnostics neuroshard::checkObjective(const CostModel &model,
                                       const ObjectiveOptions &options) {
  Diagnostics errors;
  if (options.kind == ObjectiveKind::Step && !model.separatesBackward())
    errors.push_back(
        {"objective", "cost model '" + model.name() +
                          "' gives one number for forward and backward; it "
                          "serves only the objective 'published'"});
  for (auto [name, value] :
       {std::pair("dense_bottom_ms", options.denseBottomMs),
        std::pair("dense_rest_ms", options.denseRestMs)})
    if (!(value >= 0 && value < 1e12))
      errors.push_back({name, "expected a number of at least 0, got: " +
                                  std::to_string(value)});
  if (options.pipelineDepth < 1)
    errors.push_back(
        {"pipeline_depth",
         "expected at least 1, got: " + std::to_string(options.pipelineDepth)});
  return errors;
}
