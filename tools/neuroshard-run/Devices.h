//===- Devices.h - Opens an artifact on devices -----------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_DEVICES_H
#define NEUROSHARD_TOOLS_RUN_DEVICES_H

#include "Call.h"

#include "neuroshard/Runtime/DriverABI.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard::run {

struct CloseWorld {
  void operator()(nsrt_world *world) const { nsrt_world_close(world); }
};
using World = std::unique_ptr<nsrt_world, CloseWorld>;

/// What --device takes, the default first.
std::vector<std::string> deviceNames();

/// Where a function has its tensors.
Memory memoryOf(const std::string &device, const FunctionSpec &function);

/// Opens all devices of the artifact on threads of the host ("cpu"), or its
/// programs for GPUs on those of the machine ("cuda") or in the emulator
/// ("emulator"). Throws std::runtime_error.
World openWorld(const std::string &directory, int32_t threadsPerDevice,
                const std::string &device, const std::string &tierDirectory);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_DEVICES_H
