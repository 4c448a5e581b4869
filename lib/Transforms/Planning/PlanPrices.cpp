//===- PlanPrices.cpp - Predicted costs of a plan as remarks --------------===//

#include "neuroshard/Transforms/PlanPrices.h"

#include "Levels.h"
#include "Remarks/PlanRemarks.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Model/StoredBytes.h"
#include "neuroshard/Model/TopologyLevels.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/EmitDiagnostics.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace neuroshard;

using ir::PlanOp;
using ir::ShardOp;
using ir::TableOp;

namespace {

std::string msText(double ms) { return llvm::formatv("{0:f3} ms", ms).str(); }

/// "lookups 0.100 ms, updates 0.200 ms", or one number of a model that has
/// one.
std::string computeText(const ComputeMs &compute, const CostModel &model) {
  if (!model.separatesBackward())
    return "lookups and updates " + msText(compute.total());
  return "lookups " + msText(compute.forwardMs) + ", updates " +
         msText(compute.backwardMs);
}

/// "1 shard", "2 shards".
std::string countText(size_t count, const std::string &noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// "device 3", "devices 0, 1, 2", "16 devices".
template <typename Devices> std::string devicesText(const Devices &devices) {
  constexpr size_t kMostNamed = 8;
  if (devices.size() > kMostNamed)
    return countText(devices.size(), "device");
  std::string text = devices.size() == 1 ? "device" : "devices";
  for (int device : devices)
    text += (text.back() == 's' || text.back() == 'e' ? " " : ", ") +
            std::to_string(device);
  return text;
}

/// What the provenance says of the objective; the default for what it does not.
ObjectiveOptions objectiveOf(const Provenance &provenance) {
  ObjectiveOptions objective;
  if (auto kind = parseObjectiveKind(provenance.objective))
    objective.kind = *kind;
  for (const auto &[name, value] : provenance.settings) {
    double *number = llvm::StringSwitch<double *>(name)
                         .Case("dense_bottom_ms", &objective.denseBottomMs)
                         .Case("dense_rest_ms", &objective.denseRestMs)
                         .Default(nullptr);
    if (number)
      llvm::StringRef(value).getAsDouble(*number);
    else if (name == "pipeline_depth")
      llvm::StringRef(value).getAsInteger(10, objective.pipelineDepth);
  }
  return objective;
}

/// A plan that verify() accepts, and what predicts its cost.
class Pricer {
public:
  Pricer(PlanOp op, const ShardingProblem &problem, const ShardingPlan &plan,
         const CostModel &model)
      : op(op), problem(problem), summary(summarized(problem)), plan(plan),
        model(model), objective(objectiveOf(plan.provenance)) {}

  FailureOr<std::vector<Price>> prices();

private:
  void priceStep(const CostBreakdown &cost);
  void priceProvenance();
  void priceShards();
  void priceTables();
  std::vector<ComputeMs> computeOfShards() const;
  void add(Operation *on, std::string text) {
    result.push_back({on, std::move(text)});
  }

  PlanOp op;
  const ShardingProblem &problem;
  /// Without snapshots.
  const ShardingProblem summary;
  const ShardingPlan &plan;
  const CostModel &model;
  const ObjectiveOptions objective;
  /// The device that computes longest, and the fullest.
  int slowest = 0, fullest = 0;
  std::vector<Price> result;
};

void Pricer::priceStep(const CostBreakdown &cost) {
  const std::vector<DeviceCost> &devices = cost.devices;
  auto deviceOfMost = [&](auto most) {
    return static_cast<int>(std::ranges::max_element(devices, {}, most) -
                            devices.begin());
  };
  slowest = deviceOfMost(
      [](const DeviceCost &device) { return device.compute.total(); });
  std::vector<MemoryTerms> memory = planMemory(problem, plan.shards).devices;
  auto fill = [&](size_t device) {
    return static_cast<double>(memory[device].peakBytes()) /
           static_cast<double>(problem.topology.devices[device].memoryBytes);
  };
  for (size_t device = 0; device < memory.size(); ++device)
    if (fill(device) > fill(static_cast<size_t>(fullest)))
      fullest = static_cast<int>(device);

  std::string predicted =
      objective.kind == ObjectiveKind::Step ? "step " : "published cost ";
  std::string parts = objective.kind == ObjectiveKind::Step
                          ? ": " + describeStep(cost)
                          : std::string();
  add(op, "predicted " + predicted + msText(cost.costMs) + " by '" +
              printable(model.name()) + "'" + parts);
  size_t full = static_cast<size_t>(fullest);
  add(op, llvm::formatv(
              "device {0} computes longest: {1}; device {2} is fullest: {3} of "
              "{4} ({5:f0} %)",
              slowest,
              computeText(devices[static_cast<size_t>(slowest)].compute, model),
              fullest, formatBytes(memory[full].peakBytes()),
              formatBytes(problem.topology.devices[full].memoryBytes),
              100 * fill(full))
              .str());
  if (cost.fetchMs > 0) {
    int device =
        deviceOfMost([](const DeviceCost &device) { return device.fetchMs; });
    add(op, "device " + std::to_string(device) +
                " fetches rows of lower tiers longest: " +
                msText(devices[static_cast<size_t>(device)].fetchMs));
  }
}

void Pricer::priceProvenance() {
  const Provenance &made = plan.provenance;
  if (!made.algorithm.empty()) {
    std::string text = "made by the algorithm '" + printable(made.algorithm) +
                       "' with seed " + std::to_string(made.seed);
    if (made.predictedCostMs)
      text += ", for which '" + printable(made.costModel) + "' predicted " +
              msText(*made.predictedCostMs);
    add(op, text);
  }
  for (const std::string &remark : remarksOnPlan(problem, plan, model))
    add(op, printable(remark));
}

/// Of each shard as the only one of a device.
std::vector<ComputeMs> Pricer::computeOfShards() const {
  PlanWork work = describePlan(summary, plan);
  std::vector<ShardSet> sets;
  sets.reserve(plan.shards.size());
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    size_t device = static_cast<size_t>(plan.shards[i].devices.front());
    sets.push_back({work.sets[device].deviceClass, {&work.works[i]}});
  }
  std::vector<ComputeMs> compute(sets.size());
  model.computeMs(sets, compute);
  return compute;
}

void Pricer::priceShards() {
  std::vector<std::vector<int>> features = featuresOfTables(summary);
  llvm::StringMap<size_t> indexOfTable;
  for (auto [index, table] : llvm::enumerate(summary.tables))
    indexOfTable[table.name] = index;
  std::vector<bool> columnSplit =
      columnSplitTables(summary.tables, plan.shards);
  std::vector<ComputeMs> compute = computeOfShards();
  size_t index = 0;
  // planFromIR() keeps the order of the ops.
  for (ShardOp shardOp : op.getBody().getOps<ShardOp>()) {
    const Shard &shard = plan.shards[index];
    size_t tableIndex = indexOfTable.at(shard.table);
    const Table &table = summary.tables[tableIndex];
    bool norms =
        needsNormExchange(table.optimizer.kind, summary.optimizerSemantics,
                          columnSplit[tableIndex]);
    MemoryTerms memory =
        shardMemory(summary, table, features[tableIndex], shard, norms);
    int64_t stored = memory.weightsBytes + memory.optimizerStateBytes;
    std::string text = devicesText(shard.devices);
    text += llvm::formatv(": {0}{1}: weights {2}, optimizer states {3}, "
                          "buffers {4}",
                          formatBytes(memory.peakBytes()),
                          shard.hasCopies() ? " on each" : "",
                          formatBytes(memory.weightsBytes),
                          formatBytes(memory.optimizerStateBytes),
                          formatBytes(memory.peakBytes() - stored))
                .str();
    if (memory.hostBytes > 0)
      text += ", on the host " + formatBytes(memory.hostBytes);
    if (memory.diskBytes > 0)
      text += ", on disk " + formatBytes(memory.diskBytes);
    text += "; alone: " + computeText(compute[index], model);
    if (llvm::is_contained(shard.devices, slowest))
      text += "; device " + std::to_string(slowest) + " computes longest";
    if (llvm::is_contained(shard.devices, fullest))
      text += "; device " + std::to_string(fullest) + " is fullest";
    add(shardOp, text);
    ++index;
  }
}

void Pricer::priceTables() {
  std::vector<int> innerGroup = groupOfDevices(problem.topology.levels.back());
  llvm::StringMap<std::vector<const Shard *>> shardsOfTable;
  for (const Shard &shard : plan.shards)
    shardsOfTable[shard.table].push_back(&shard);
  llvm::StringMap<const Table *> tableOfName;
  for (const Table &table : problem.tables)
    tableOfName[table.name] = &table;
  auto module = op->getParentOfType<ModuleOp>();
  for (TableOp tableOp : module.getOps<TableOp>()) {
    const Table &table = *tableOfName.at(tableOp.getSymName());
    const auto &shards = shardsOfTable[table.name];
    std::set<int> devices;
    for (const Shard *shard : shards)
      devices.insert(shard->devices.begin(), shard->devices.end());
    std::string kind(toString(classify(table, shards, innerGroup)));
    add(tableOp,
        llvm::formatv("{0} x {1}, {2} of weights and optimizer states; {3}: "
                      "{4} on {5}",
                      table.rows, table.dim,
                      formatBytes(static_cast<int64_t>(storedBytes(table))),
                      kind, countText(shards.size(), "shard"),
                      devicesText(devices))
            .str());
  }
}

FailureOr<std::vector<Price>> Pricer::prices() {
  if (Diagnostics errors = checkObjective(model, objective); !errors.empty())
    return emitDiagnostics(op.getLoc(), errors);
  priceStep(evaluate(problem, plan, model, objective));
  priceProvenance();
  priceShards();
  priceTables();
  return std::move(result);
}

} // namespace

FailureOr<std::vector<Price>> neuroshard::pricePlan(PlanOp op,
                                                    llvm::StringRef costModel) {
  auto module = op->getParentOfType<ModuleOp>();
  auto isLater = [](Operation *other) {
    return isSharded(other) || isPartitioned(other);
  };
  if (!module)
    return op.emitOpError("must be in a module to be priced");
  if (failed(verifyLevel(module, "planned", isLater,
                         "; a plan is priced with the lookups that it is for")))
    return mlir::failure();
  FailureOr<ShardingProblem> problem = problemFromIR(op);
  FailureOr<ShardingPlan> plan = planFromIR(op);
  if (failed(problem) || failed(plan))
    return mlir::failure();
  if (problem->batch.globalSize == 0)
    return emitError(module.getLoc(), "the global batch is not known; set the "
                                      "attribute 'neuroshard.batch'");
  if (Diagnostics errors = check(*problem); !errors.empty())
    return emitDiagnostics(op.getLoc(), errors);
  if (Diagnostics errors = verify(*plan, *problem); !errors.empty())
    return emitDiagnostics(op.getLoc(), errors);
  Expected<std::unique_ptr<CostModel>> model =
      makeCostModel(costModel.str(), problem->topology);
  if (!model)
    return emitDiagnostics(op.getLoc(), model.error());
  FailureOr<std::vector<Price>> prices =
      Pricer(op, *problem, *plan, **model).prices();
  if (std::optional<std::string> error = (*model)->answerError())
    return emitError(op.getLoc(), "cost model ") << *error;
  return prices;
}

void neuroshard::emitPrices(llvm::ArrayRef<Price> prices) {
  for (const Price &price : prices)
    emitRemark(price.op->getLoc()) << price.text;
}
