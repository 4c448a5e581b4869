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
  auto checkHosts = [&](llvm::StringRef list, size_t numHosts) {
    for (auto run : getDevices().getAsRange<DevicesAttr>())
      if (static_cast<size_t>(run.getHost()) >= numHosts)
        return LogicalResult(emitOpError("host ")
                             << run.getHost() << " has no entry in " << list
                             << ", which has " << numHosts);
    return success();
  };
  if (getHostMemory() &&
      failed(checkHosts("host_memory", getHostMemory()->size())))
    return failure();
  if (!getHostDisks())
    return success();
  if (getHostMemory() && getHostMemory()->size() != getHostDisks()->size())
    return emitOpError("host_memory has ")
           << getHostMemory()->size() << " hosts, and host_disks "
           << getHostDisks()->size();
  return checkHosts("host_disks", getHostDisks()->size());
}
