//===- CostLowerBound.cpp - Lower bound of the cost of all plans ----------===//
///
/// \file
/// The cost model bounds the work that no way of cutting avoids. Small problems
/// whose tables may only be whole or cut by columns are solved: branch and
/// bound over the columns of each table on each device.
//===----------------------------------------------------------------------===//

#include "DriftingTables.h"
#include "ForwardModel.h"
#include "IdMaps.h"
#include "RelayLoads.h"
#include "neuroshard/Artifact/CopyMessage.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

using namespace neuroshard;

namespace {

/// Plans a problem may have for it to be solved.
constexpr double kMaxPlans = 2e7;
/// Nodes after which solving is given up, over all snapshots.
constexpr int64_t kMaxNodes = 300'000;
/// The same cost summed in another order differs by less.
constexpr double kRounding = 1e-12;

int64_t smallestMemory(const ShardingProblem &problem) {
  int64_t bytes = problem.topology.devices.front().memoryBytes;
  for (const Device &device : problem.topology.devices)
    bytes = std::min(bytes, device.memoryBytes);
  return bytes;
}

/// Sets what all copies of a table exchange in backward. Of sums of rows a
/// device of each group has its part.
void setReplicaBytes(const ShardingProblem &problem, int table,
                     const std::vector<int> &features, Shard shard,
                     BoundTable &bound) {
  int devices = problem.topology.deviceCount();
  shard.devices.resize(static_cast<size_t>(devices));
  ShardWork copy = describeShard(problem, table, features, shard);
  int groupSize = std::max(1, relayGroupSize(problem.topology));
  double others = copy.backwardBytes - copy.rowSumBytes;
  double early = groupSize > 1 ? 0 : copy.rowSumBytes - copy.lateSumBytes;
  bound.replicaBackwardBytes =
      devices * (others + copy.rowSumBytes / groupSize);
  bound.replicaReceivedBytes = devices * (others + early);
  if (problem.target != Target::Native)
    return;
  // Of copies on some devices at least one sends each row to another.
  CopyMessage message{static_cast<int32_t>(copy.idBytes), copy.width,
                      rowSumFormat(problem.batch.wireType.gradients)};
  auto rows = static_cast<int64_t>(copy.updateUniqueRows);
  auto least = static_cast<double>(message.bytes(rows));
  for (double *bytes :
       {&bound.replicaBackwardBytes, &bound.replicaReceivedBytes})
    *bytes = std::min(*bytes, least);
}

/// Whether a table may have copies: a whole one on each device or, for the
/// native target, any part on any devices.
bool hasRoomForCopies(const ShardingProblem &problem, const Table &table,
                      const std::vector<int> &features, const Shard &whole) {
  return problem.target == Target::Native ||
         shardMemory(problem, table, features, whole).weightsBytes <=
             smallestMemory(problem);
}

/// What a plan may do to each table, for the bound. Fixed shards are free to
/// be anything, so they only widen it.
std::vector<BoundTable> boundTables(const ShardingProblem &problem,
                                    const CostModel &model) {
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::unordered_map<int, const TableConstraint *> constraintOf;
  for (const TableConstraint &constraint : problem.constraints.tables)
    constraintOf.emplace(constraint.table, &constraint);
  bool handReplicas =
      std::any_of(problem.constraints.fixedShards.begin(),
                  problem.constraints.fixedShards.end(),
                  [](const Shard &shard) { return shard.hasCopies(); });
  std::vector<bool> mayDrift = tablesThatMayDrift(problem);
  std::vector<BoundTable> tables;
  for (size_t i = 0; i < problem.tables.size(); ++i) {
    const Table &table = problem.tables[i];
    Shard whole = wholeOn(table, 0);
    BoundTable bound;
    bound.whole =
        describeShard(problem, static_cast<int>(i), features[i], whole);
    auto found = constraintOf.find(static_cast<int>(i));
    auto allows = [&](std::initializer_list<ShardingKind> kinds) {
      if (found == constraintOf.end() || found->second->allowedKinds.empty())
        return true;
      const auto &allowed = found->second->allowedKinds;
      return std::find_first_of(allowed.begin(), allowed.end(), kinds.begin(),
                                kinds.end()) != allowed.end();
    };
    bound.mayRowSplit =
        allows({ShardingKind::RowWise, ShardingKind::TableRowWise,
                ShardingKind::RowColumn});
    // One number for forward and backward says nothing about the updates of
    // replicas: nobody gets them unasked.
    bool asked =
        model.separatesBackward() || handReplicas ||
        (found != constraintOf.end() && !found->second->allowedKinds.empty());
    bound.mayReplicate = asked && allows({ShardingKind::Replicated}) &&
                         hasRoomForCopies(problem, table, features[i], whole);
    if (bound.mayReplicate)
      setReplicaBytes(problem, static_cast<int>(i), features[i], whole, bound);
    // Copies that drift exchange nothing in most steps: the bound counts 0.
    // Nor do hot rows alone with their share of ids.
    if (mayDrift[i] || (bound.mayReplicate && hasRowsByUse(table)))
      bound.replicaBackwardBytes = bound.replicaReceivedBytes = 0;
    tables.push_back(bound);
  }
  return tables;
}

/// `sendsInPieces`: results may be sent while others are looked up.
double boundOf(std::span<const BoundTable> tables, const Topology &topology,
               const CostModel &model, const ObjectiveOptions &options,
               bool sendsInPieces) {
  CostBound bound = model.lowerBound(tables, topology);
  if (options.kind == ObjectiveKind::Published)
    return bound.maxTotalMs + bound.minCommunicationMs;
  double forward = std::max({bound.maxForwardMs + options.denseBottomMs,
                             sendsInPieces ? 0 : bound.maxForwardSendMs,
                             bound.maxForwardCommunicationMs});
  double backward = std::max({bound.maxBackwardMs, bound.maxReceiveBackwardMs,
                              bound.maxBackwardCommunicationMs});
  double step =
      std::max(bound.maxTotalMs + options.denseBottomMs, forward + backward) +
      options.denseRestMs + model.fixedStepMs();
  if (options.pipelineDepth == 1)
    return step + bound.maxInputMs;
  // Ids may hide behind dense work and updates, not behind gradients.
  return std::max(step, forward + bound.maxInputMs +
                            bound.maxBackwardCommunicationMs +
                            model.fixedStepMs());
}

/// One way to spread a table's columns: how much of it each device holds.
struct Spread {
  std::vector<int64_t> widths;
};

/// Finds the cheapest plan in which each device holds at most one piece of each
/// table; a second never makes a monotone model cheaper.
class Solver {
public:
  Solver(const ShardingProblem &problem, std::vector<BoundTable> tables,
         const CostModel &model, const ObjectiveOptions &options,
         int64_t maxNodes);

  /// Each spread of each table is a node at least once.
  bool tooLarge() const {
    return plans > kMaxPlans || fewestNodes > static_cast<double>(maxNodes);
  }
  /// Nothing when it was given up.
  std::optional<double> run();

private:
  void addSpreads(size_t table);
  const ShardWork &work(size_t table, int64_t width) const {
    return works[table].at(width);
  }
  void place(size_t table, const Spread &spread, int sign);
  double partialMs() const;
  void descend(size_t depth);

  const ShardingProblem &problem;
  std::vector<BoundTable> tables;
  const CostModel &model;
  const ObjectiveOptions &options;
  const size_t devices;
  const int64_t maxNodes;
  double plans = 1;
  double fewestNodes = 0;
  std::vector<std::vector<Spread>> spreads;
  std::vector<std::unordered_map<int64_t, ShardWork>> works;
  std::vector<std::vector<const ShardWork *>> placed;
  std::vector<DeviceLoad> loads;
  /// Those placed so far.
  std::vector<BoundTable> pieces;
  double best = 1e300;
  int64_t nodes = 0;
};

Solver::Solver(const ShardingProblem &problem, std::vector<BoundTable> list,
               const CostModel &model, const ObjectiveOptions &options,
               int64_t maxNodes)
    : problem(problem), tables(std::move(list)), model(model), options(options),
      devices(problem.topology.devices.size()), maxNodes(maxNodes),
      spreads(tables.size()), works(tables.size()), placed(devices),
      loads(devices) {
  // Large tables first: they decide most.
  auto weight = [](const BoundTable &table) {
    return table.whole.lookups * static_cast<double>(table.whole.width);
  };
  std::stable_sort(tables.begin(), tables.end(),
                   [&](const BoundTable &a, const BoundTable &b) {
                     return weight(a) > weight(b);
                   });
  for (const BoundTable &table : tables) {
    double groups = static_cast<double>(
        (table.whole.tableDim + kColumnAlignment - 1) / kColumnAlignment);
    // As addSpreads lists them.
    bool odd = table.whole.tableDim % kColumnAlignment != 0;
    double whole = odd ? groups - 1 : groups;
    double ways = odd ? static_cast<double>(devices) : 1;
    for (size_t d = 1; d < devices; ++d) {
      double device = static_cast<double>(d);
      plans *= (groups + device) / device;
      ways *= (whole + device) / device;
    }
    fewestNodes += ways;
    if (tooLarge())
      return;
  }
  for (size_t i = 0; i < tables.size(); ++i)
    addSpreads(i);
}

void Solver::addSpreads(size_t table) {
  int index = tables[table].whole.table;
  const Table &source = problem.tables[static_cast<size_t>(index)];
  std::vector<int> features =
      featuresOfTables(problem)[static_cast<size_t>(index)];
  auto describe = [&](int64_t width) {
    Shard shard{.name = source.name,
                .table = source.name,
                .rowEnd = source.rows,
                .colEnd = width,
                .devices = {0}};
    works[table].emplace(width, describeShard(problem, index, features, shard));
  };
  int64_t odd = source.dim % kColumnAlignment;
  Spread spread{std::vector<int64_t>(devices)};
  // A rest narrower than 4 columns goes with any piece, or alone.
  auto add = [&] {
    for (size_t d = 0; d < (odd ? devices : 1); ++d) {
      Spread one = spread;
      one.widths[d] += odd;
      for (int64_t width : one.widths)
        if (width > 0 && !works[table].contains(width))
          describe(width);
      spreads[table].push_back(std::move(one));
    }
  };
  std::function<void(size_t, int64_t)> fill = [&](size_t device, int64_t left) {
    if (device + 1 == devices) {
      spread.widths[device] = left * kColumnAlignment;
      return add();
    }
    for (int64_t here = 0; here <= left; ++here) {
      spread.widths[device] = here * kColumnAlignment;
      fill(device + 1, left - here);
    }
  };
  fill(0, source.dim / kColumnAlignment);
}

void Solver::place(size_t table, const Spread &spread, int sign) {
  for (size_t d = 0; d < devices; ++d) {
    if (spread.widths[d] == 0)
      continue;
    const ShardWork &piece = work(table, spread.widths[d]);
    if (sign > 0)
      placed[d].push_back(&piece);
    else
      placed[d].pop_back();
    addLoads(loads[d], loadOf(piece), sign);
  }
}

/// The objective of what is placed so far.
double Solver::partialMs() const {
  std::vector<ShardSet> sets(devices);
  for (size_t d = 0; d < devices; ++d)
    sets[d] = {findDeviceClass(problem.topology,
                               problem.topology.devices[d].deviceClass),
               placed[d]};
  std::vector<ComputeMs> compute(devices);
  model.computeMs(sets, compute);
  std::vector<DeviceLoad> now = loads;
  for (size_t d = 0; d < devices; ++d)
    now[d].compute = compute[d];
  return composeCost(problem.topology, now, model, options).costMs;
}

void Solver::descend(size_t depth) {
  if (depth == tables.size()) {
    best = std::min(best, partialMs());
    return;
  }
  std::vector<std::pair<double, const Spread *>> children;
  for (const Spread &spread : spreads[depth]) {
    if (++nodes > maxNodes)
      return;
    place(depth, spread, 1);
    double cost = partialMs();
    place(depth, spread, -1);
    if (cost < best)
      children.emplace_back(cost, &spread);
  }
  std::stable_sort(
      children.begin(), children.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[cost, spread] : children) {
    if (cost >= best)
      return;
    place(depth, *spread, 1);
    size_t before = pieces.size();
    for (int64_t width : spread->widths)
      if (width > 0)
        pieces.push_back({work(depth, width), false, false, 0});
    std::vector<BoundTable> all = pieces;
    all.insert(all.end(),
               tables.begin() + static_cast<std::ptrdiff_t>(depth) + 1,
               tables.end());
    if (boundOf(all, problem.topology, model, options,
                /*sendsInPieces=*/false) < best)
      descend(depth + 1);
    pieces.resize(before);
    place(depth, *spread, -1);
  }
}

std::optional<double> Solver::run() {
  descend(0);
  return nodes > maxNodes ? std::nullopt : std::optional(best);
}

/// The cost of the best plan, memory and places apart, if the problem is small
/// and its tables may only be whole or cut by columns.
std::optional<double> exactCostMs(const ShardingProblem &problem,
                                  const std::vector<BoundTable> &tables,
                                  const CostModel &model,
                                  const ObjectiveOptions &options,
                                  int64_t maxNodes) {
  bool columnsOnly =
      std::none_of(tables.begin(), tables.end(), [](const BoundTable &table) {
        return table.mayRowSplit || table.mayReplicate;
      });
  // The solver takes ids to come directly.
  if (!model.monotone() || !columnsOnly || relayGroupSize(problem) > 0 ||
      !problem.constraints.fixedShards.empty())
    return std::nullopt;
  Solver solver(problem, tables, model, options, maxNodes);
  if (solver.tooLarge())
    return std::nullopt;
  return solver.run();
}

/// The bound of a problem without snapshots.
double boundMs(const ShardingProblem &problem, const CostModel &given,
               const ObjectiveOptions &options, int64_t maxNodes) {
  ModelOfMode ofMode(problem, given);
  const CostModel &model = *ofMode;
  std::vector<BoundTable> tables = boundTables(problem, model);
  double root = boundOf(tables, problem.topology, model, options,
                        relayGroupSize(problem) > 0);
  std::optional<double> exact =
      exactCostMs(problem, tables, model, options, maxNodes);
  return exact ? std::max(root, *exact * (1 - kRounding)) : root;
}

} // namespace

double neuroshard::lowerBoundMs(const ShardingProblem &problem,
                                const CostModel &model,
                                const ObjectiveOptions &options) {
  if (hasDynamicIds(problem))
    return lowerBoundMs(
        withoutIdMaps(problem),
        LongerSteps(model, idMapsCost(problem, model).totalMs()), options);
  if (problem.snapshots.empty())
    return boundMs(problem, model, options, kMaxNodes);
  std::vector<double> shares = snapshotShares(problem);
  int64_t maxNodes = kMaxNodes / static_cast<int64_t>(shares.size());
  double mean = 0;
  for (size_t i = 0; i < shares.size(); ++i)
    mean +=
        shares[i] * boundMs(atSnapshot(problem, i), model, options, maxNodes);
  return mean;
}
