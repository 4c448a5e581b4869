//===- TopologyFromGrid.cpp - Pass: a topology from a grid ----------------===//

#include "neuroshard/Transforms/Passes.h"

#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Limits.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

using namespace mlir;
using namespace neuroshard;

using ir::TopologyOp;
using shard::GridOp;

namespace neuroshard {
#define GEN_PASS_DEF_TOPOLOGYFROMGRID
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

namespace {

/// Properties of devices and links, which a grid does not have.
struct GridDevices {
  const DeviceClass *deviceClass = nullptr;
  /// Usable memory of each device.
  int64_t memoryBytes = 0;
  /// Most neighbouring devices that share a host.
  int devicesPerNode = 1;
  /// For the link along each axis, per device and direction; empty: as in the
  /// device class.
  std::span<const double> bandwidthGBps;
  std::span<const double> latencyUs;
};

/// An axis of more than one device, which becomes a level.
struct Axis {
  size_t index;
  /// Devices that agree in all axes before it.
  int64_t groupSize;
};

Diagnostics checkNumbers(std::string_view option, std::span<const double> list,
                         size_t rank, bool zeroAllowed) {
  if (!list.empty() && list.size() != rank)
    return {{std::string(option),
             "expected one number for each of the " + std::to_string(rank) +
                 " axes, got: " + std::to_string(list.size())}};
  for (double number : list)
    if (!std::isfinite(number) || number < 0 || (number == 0 && !zeroAllowed))
      return {{std::string(option),
               std::string("expected numbers ") +
                   (zeroAllowed ? "of at least 0" : "above 0") +
                   ", got: " + std::to_string(number)}};
  return {};
}

/// Number of devices, or an error about a size.
Expected<int64_t> countDevices(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 1)
      return failure("shape", "axis " + std::to_string(axis) +
                                  " must have at least 1 device, got: " +
                                  std::to_string(shape[axis]));
    if (shape[axis] > kMaxDevices / count)
      return failure("shape", "expected at most " +
                                  std::to_string(kMaxDevices) + " devices");
    count *= shape[axis];
  }
  return count;
}

class GridReader {
public:
  GridReader(std::span<const int64_t> shape, const GridDevices &devices,
             int64_t count)
      : devices(devices), count(count) {
    int64_t groupSize = count;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] > 1)
        axes.push_back({i, groupSize});
      groupSize /= shape[i];
    }
    if (axes.empty())
      axes.push_back({shape.size() - 1, 1});
  }

  Topology read();

private:
  bool isInNode(int64_t groupSize) const {
    return groupSize <= devices.devicesPerNode;
  }
  TopologyLevel levelOf(const Axis &axis) const;
  std::vector<int> nodes() const;
  void addNodes(Topology &topology) const;

  const GridDevices &devices;
  int64_t count;
  std::vector<Axis> axes;
};

/// Number of devices of each host: the largest groups of an axis that fit into
/// a node; if none does, the groups of the last axis cut into nodes.
std::vector<int> GridReader::nodes() const {
  std::vector<int> sizes;
  for (const Axis &axis : axes)
    if (isInNode(axis.groupSize)) {
      sizes.assign(static_cast<size_t>(count / axis.groupSize),
                   static_cast<int>(axis.groupSize));
      return sizes;
    }
  for (int64_t group = 0; group < count / axes.back().groupSize; ++group)
    for (int64_t rest = axes.back().groupSize; rest > 0;
         rest -= devices.devicesPerNode)
      sizes.push_back(
          static_cast<int>(std::min<int64_t>(rest, devices.devicesPerNode)));
  return sizes;
}

TopologyLevel GridReader::levelOf(const Axis &axis) const {
  const DeviceClass &known = *devices.deviceClass;
  bool inNode = isInNode(axis.groupSize);
  TopologyLevel level;
  level.name = "axis" + std::to_string(axis.index);
  level.groupSizes.assign(static_cast<size_t>(count / axis.groupSize),
                          static_cast<int>(axis.groupSize));
  level.bandwidthGBps = !devices.bandwidthGBps.empty()
                            ? devices.bandwidthGBps[axis.index]
                        : inNode ? known.nodeBandwidthGBps
                                 : known.networkBandwidthGBps;
  level.latencyUs = !devices.latencyUs.empty() ? devices.latencyUs[axis.index]
                    : inNode                   ? known.nodeLatencyUs
                                               : known.networkLatencyUs;
  return level;
}

/// If no axis lies inside a node, the nodes become a level, unless the caller
/// gives the links.
void GridReader::addNodes(Topology &topology) const {
  std::vector<int> sizes = nodes();
  const DeviceClass &known = *devices.deviceClass;
  if (!isInNode(axes.back().groupSize) && devices.bandwidthGBps.empty())
    topology.levels.push_back(
        {"node", sizes, known.nodeBandwidthGBps, known.nodeLatencyUs});
  for (int size : sizes) {
    Device device{std::string(known.name), devices.memoryBytes,
                  static_cast<int>(topology.hosts.size())};
    topology.devices.insert(topology.devices.end(), static_cast<size_t>(size),
                            device);
    topology.hosts.push_back({known.hostMemoryBytes});
  }
  // The names that topologies have everywhere else.
  if (topology.levels.front().groupSizes.size() < sizes.size())
    topology.levels.front().name = "cluster";
  for (TopologyLevel &level : topology.levels)
    if (level.groupSizes == sizes)
      level.name = "node";
}

Topology GridReader::read() {
  Topology topology;
  for (const Axis &axis : axes) {
    TopologyLevel level = levelOf(axis);
    if (topology.levels.empty() ||
        topology.levels.back().bandwidthGBps != level.bandwidthGBps ||
        topology.levels.back().latencyUs != level.latencyUs)
      topology.levels.push_back(std::move(level));
  }
  addNodes(topology);
  if (devices.deviceClass->isUserDefined)
    topology.ownClasses = {devices.deviceClass};
  return topology;
}

/// The topology of devices numbered row by row: those that differ in the last
/// axis alone are neighbours. Each axis is a level, the first the outermost;
/// its groups hold the devices that agree in the axes before it. Axes of one
/// device make no level; of neighbouring levels with the same link the outer
/// one stays. Errors name an option of the pass, or "shape".
Expected<Topology> gridTopology(std::span<const int64_t> shape,
                                const GridDevices &devices) {
  if (shape.empty())
    return failure("shape", "a grid needs at least one axis");
  Expected<int64_t> count = countDevices(shape);
  if (!count)
    return tl::unexpected(count.error());
  Diagnostics errors =
      checkNumbers("bandwidth", devices.bandwidthGBps, shape.size(), false);
  if (errors.empty())
    errors = checkNumbers("latency", devices.latencyUs, shape.size(), true);
  if (!errors.empty())
    return tl::unexpected(errors);
  return GridReader(shape, devices, *count).read();
}

struct TopologyFromGridPass
    : public CheckedOptions<
          neuroshard::impl::TopologyFromGridBase<TopologyFromGridPass>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
  bool isSettledBy(TopologyOp present);
  FailureOr<GridOp> findGrid();
  FailureOr<Topology> topologyOf(GridOp gridOp);
  FailureOr<const DeviceClass *> findClass(GridOp gridOp);
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
           << printable(grid) << "'";
  if (!only && !deviceClass.empty())
    return emitError(module.getLoc(),
                     "option 'device-class' is for a module with a "
                     "'shard.grid', but there is none");
  return only;
}

/// The class that the option names: a built-in one, or NAME@FILE.
FailureOr<const DeviceClass *> TopologyFromGridPass::findClass(GridOp gridOp) {
  auto [name, path] = StringRef(deviceClass).split('@');
  std::vector<const DeviceClass *> own;
  if (!path.empty()) {
    auto read = readDeviceClasses(path.str());
    if (!read)
      return gridOp.emitOpError("option 'device-class': ")
             << toString(read.error());
    own = *read;
  }
  if (name.empty())
    return gridOp.emitOpError("does not say what its devices are; name their "
                              "class with the option 'device-class', one of: ")
           << deviceClassNames(own);
  if (const DeviceClass *found = findDeviceClassInAnyCase(name, own))
    return found;
  return gridOp.emitOpError("option 'device-class': expected one of: ")
         << deviceClassNames(own) << ", got: '" << printable(name) << "'";
}

FailureOr<Topology> TopologyFromGridPass::topologyOf(GridOp gridOp) {
  GridDevices devices;
  FailureOr<const DeviceClass *> known = findClass(gridOp);
  if (failed(known))
    return failure();
  devices.deviceClass = *known;
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
