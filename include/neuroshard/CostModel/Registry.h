//===- Registry.h - Cost models by name -------------------------*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_REGISTRY_H
#define NEUROSHARD_COSTMODEL_REGISTRY_H

#include "neuroshard/CostModel/ModelNames.h"
#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/CostModel.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// A cost model for problems on `topology`:
///
///   auto       the shipped measured models of its device classes; the
///              roofline for what has none, and a remark that says so
///   roofline   the closed form
///   reference  the closed form of the published tasks
///   a.safetensors,b.safetensors
///              these compute and communication models, measured or simulated
///   machine.json
///              the model that this machine file names, as it corrects it
///   others     the registered model of this name (Plugin.h)
///
/// An error says what is wrong with the name, or with which file.
Expected<std::unique_ptr<CostModel>> makeCostModel(std::string_view name,
                                                   const Topology &topology);

/// model.remarks() on the devices of a plan that verify() accepts.
std::vector<std::string> remarksOnPlan(const ShardingProblem &problem,
                                       const ShardingPlan &plan,
                                       const CostModel &model);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_REGISTRY_H
