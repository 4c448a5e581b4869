//===- PlanFile.cpp - The plan of --plan FILE -----------------------------===//

#include "PlanFile.h"

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/EmitDiagnostics.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/PlannerConversion.h"

using namespace mlir;

namespace neuroshard {

/// The topology for a plan from a file.
static FailureOr<ir::TopologyOp> getTopology(ModuleOp module,
                                             StringRef option) {
  FailureOr<ir::TopologyOp> found = findTopology(module);
  if (failed(found) || *found)
    return found;
  if (option.empty())
    return emitError(module.getLoc(), "a plan needs a topology; add a "
                                      "'neuroshard.topology' or --topology");
  Expected<Topology> parsed = topologyNamed(option);
  if (!parsed)
    return emitDiagnostics(module.getLoc(), parsed.error());
  return topologyToIR(*parsed, module);
}

LogicalResult addPlanFromFile(ModuleOp module, const CompileOptions &options) {
  FailureOr<ir::PlanOp> present = findPlan(module, options.plan.planName);
  if (failed(present))
    return mlir::failure();
  if (*present)
    return present->emitOpError("exists already; --plan takes a module "
                                "without a plan");
  Expected<ShardingPlan> read = readPlan(options.planFile);
  if (!read)
    return emitDiagnostics(UnknownLoc::get(module.getContext()), read.error());
  FailureOr<ir::TopologyOp> topology =
      getTopology(module, options.plan.topology);
  if (failed(topology))
    return mlir::failure();
  int64_t numDevices = topology->getNumDevices();
  if (read->deviceCount != numDevices)
    return emitError(topology->getLoc())
           << printable(options.planFile) << " is a plan for "
           << read->deviceCount << " devices, the topology has " << numDevices;
  ir::PlanOp op = createPlan(module, newPlanName(options.plan.planName),
                             *topology, read->optimizerSemantics);
  return planToIR(*read, op);
}

} // namespace neuroshard
