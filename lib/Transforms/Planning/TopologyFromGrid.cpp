//===- TopologyFromGrid.cpp - Pass: a topology from a grid ----------------===//

#include "neuroshard/Transforms/Passes.h"

#include "GridTopology.h"

#include "neuroshard/Transforms/PlannerConversion.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace neuroshard;

using ir::TopologyOp;
using shard::GridOp;

namespace neuroshard {
#define GEN_PASS_DEF_TOPOLOGYFROMGRID
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

namespace {

struct TopologyFromGridPass
    : public neuroshard::impl::TopologyFromGridBase<TopologyFromGridPass> {
  using TopologyFromGridBase::TopologyFromGridBase;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
  bool isSettledBy(TopologyOp present);
  FailureOr<GridOp> findGrid();
  FailureOr<Topology> topologyOf(GridOp gridOp);
};

/// The grid that is meant; null when there is none.
FailureOr<GridOp> TopologyFromGridPass::findGrid() {
  ModuleOp module = getOperation();
  GridOp only;
  for (GridOp op : module.getOps<GridOp>()) {
    if (!grid.empty() && op.getSymName() != grid)
      continue;
    if (!only) {
      only = op;
      continue;
    }
    InFlightDiagnostic diagnostic =
        op.emitOpError("is not the only one in the module; name the one that "
                       "the devices are in with the option 'grid'");
    diagnostic.attachNote(only.getLoc()) << "another one is here";
    return diagnostic;
  }
  if (!only && !grid.empty())
    return emitError(module.getLoc(), "option 'grid': the module has no "
                                      "'shard.grid' of the name '")
           << grid << "'";
  if (!only && !deviceClass.empty())
    return emitError(module.getLoc(),
                     "option 'device-class' is for a module with a "
                     "'shard.grid', but there is none");
  return only;
}

FailureOr<Topology> TopologyFromGridPass::topologyOf(GridOp gridOp) {
  GridDevices devices;
  devices.deviceClass = findDeviceClass(deviceClass.getValue());
  if (deviceClass.empty())
    return gridOp.emitOpError("does not say what its devices are; name their "
                              "class with the option 'device-class', one of: ")
           << deviceClassNames();
  if (!devices.deviceClass)
    return gridOp.emitOpError("option 'device-class': expected one of: ")
           << deviceClassNames() << ", got: '" << deviceClass << "'";
  devices.memoryBytes = devices.deviceClass->memoryBytes;
  if (!memory.empty()) {
    Expected<int64_t> bytes = parseByteSize(memory);
    if (!bytes)
      return gridOp.emitOpError("option 'memory': ") << toString(bytes.error());
    devices.memoryBytes = *bytes;
  }
  if (nodeSize < 0)
    return gridOp.emitOpError("option 'node-size' must be at least 0, got: ")
           << nodeSize.getValue();
  devices.devicesPerNode =
      nodeSize > 0 ? nodeSize.getValue() : devices.deviceClass->devicesPerNode;
  std::vector<double> bandwidths(bandwidth.begin(), bandwidth.end());
  std::vector<double> latencies(latency.begin(), latency.end());
  devices.bandwidthGBps = bandwidths;
  devices.latencyUs = latencies;
  if (ShapedType::isDynamicShape(gridOp.getShape()))
    return gridOp.emitOpError("has an axis of unknown size ('?'); a topology "
                              "needs the number of its devices");
  Expected<Topology> topology = gridTopology(gridOp.getShape(), devices);
  if (topology)
    return *std::move(topology);
  return gridOp.emitOpError() << toString(topology.error());
}

/// With a topology there is no grid to choose, unless the options name one or
/// say what the only one must agree with.
bool TopologyFromGridPass::isSettledBy(TopologyOp present) {
  auto grids = getOperation().getOps<GridOp>();
  return present && grid.empty() &&
         (deviceClass.empty() || !llvm::hasSingleElement(grids));
}

LogicalResult TopologyFromGridPass::run() {
  ModuleOp module = getOperation();
  FailureOr<TopologyOp> present = findTopology(module);
  if (failed(present))
    return failure();
  if (isSettledBy(*present))
    return success();
  FailureOr<GridOp> gridOp = findGrid();
  if (failed(gridOp))
    return failure();
  if (!*gridOp || (*present && deviceClass.empty()))
    return success();
  FailureOr<Topology> topology = topologyOf(*gridOp);
  if (failed(topology))
    return failure();
  if (!*present) {
    topologyToIR(*topology, module)->setLoc(gridOp->getLoc());
    return success();
  }
  FailureOr<Topology> found = topologyFromIR(*present);
  if (failed(found))
    return failure();
  if (*found == *topology)
    return success();
  InFlightDiagnostic diagnostic = gridOp->emitOpError(
      "gives another topology than the one that is there; change one of them, "
      "or leave out the option 'device-class'");
  diagnostic.attachNote(present->getLoc()) << "the module's topology is here";
  return diagnostic;
}

} // namespace
