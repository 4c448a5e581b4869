//===- Json.h - Workloads, plans, machines as versioned JSON ----*- C++ -*-===//
///
/// \file
/// The schemas are described in docs/formats.md. Unknown fields, wrong types,
/// values out of range and truncated text are refused with the path of the
/// offending value. Writing what was read gives the same value again.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SERIALIZATION_JSON_H
#define NEUROSHARD_SERIALIZATION_JSON_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/Machine.h"
#include "neuroshard/Serialization/Files.h"

#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

inline constexpr std::string_view kWorkloadSchema = "neuroshard.workload.v1";
inline constexpr std::string_view kPlanSchema = "neuroshard.plan.v1";
inline constexpr std::string_view kMachineSchema = "neuroshard.machine.v1";

/// Reads a workload. The topology may be missing (tables only). What is there
/// is checked: checkWorkload(), and check() when it has a topology.
Expected<ShardingProblem> parseWorkload(std::string_view json);
Expected<ShardingProblem> readWorkload(const std::string &path);
std::string writeWorkload(const ShardingProblem &problem);

/// Reads a plan. verify() says whether it fits a problem.
Expected<ShardingPlan> parsePlan(std::string_view json);
Expected<ShardingPlan> readPlan(const std::string &path);
std::string writePlan(const ShardingPlan &plan);

/// Reads what `neuroshard calibrate` writes.
Expected<Machine> parseMachine(std::string_view json);
Expected<Machine> readMachine(const std::string &path);

/// The topology in a machine file or a workload; what else is there is not
/// read.
Expected<Topology> readTopology(const std::string &path);

/// The device classes that a file defines: "device_classes" of a machine file,
/// or of the topology in a machine file or a workload. What else is there is
/// not read.
Expected<std::vector<const DeviceClass *>>
readDeviceClasses(const std::string &path);

/// parseTopology(), whose text may name files with device classes, too, such as
/// "2x8xMYCARD@cards.json".
Expected<Topology> topologyOfText(std::string_view text,
                                  DeviceClasses own = {});

/// readTopology() if the name is that of a file (.json), else topologyOfText().
Expected<Topology> topologyNamed(std::string_view name, DeviceClasses own = {});

} // namespace neuroshard

#endif // NEUROSHARD_SERIALIZATION_JSON_H
