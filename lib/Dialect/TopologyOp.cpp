//===- TopologyOp.cpp - Verification of topologies ------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/TopologyLevels.h"

#include <climits>

using namespace mlir;
using namespace neuroshard::ir;

int64_t TopologyOp::getNumDevices() {
  int64_t count = 0;
  for (auto run : getDevices().getAsRange<DevicesAttr>())
    count += run.getCount();
  return count;
}

LogicalResult TopologyOp::verify() {
  int64_t numDevices = getNumDevices();
  if (numDevices == 0)
    return emitOpError("must have at least one device");
  if (getLevels().empty())
    return emitOpError("must have at least one level");
  SmallVector<neuroshard::TopologyLevel> levels;
  for (auto level : getLevels().getAsRange<LevelAttr>()) {
    neuroshard::TopologyLevel &groups = levels.emplace_back();
    for (int64_t size : level.getGroups().asArrayRef())
      groups.groupSizes.push_back(
          static_cast<int>(std::min<int64_t>(size, INT_MAX)));
    std::string error =
        neuroshard::checkGroups(levels, levels.size() - 1, numDevices);
    if (!error.empty())
      return emitOpError("level ") << level.getName() << ": " << error;
  }
  int64_t numHosts = getHostMemory() ? getHostMemory()->size() : -1;
  for (auto run : getDevices().getAsRange<DevicesAttr>())
    if (numHosts >= 0 && run.getHost() >= numHosts)
      return emitOpError("host ")
             << run.getHost() << " has no entry in host_memory, which has "
             << numHosts;
  return success();
}
