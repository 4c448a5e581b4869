//===- Registry.h - Cost models by name -------------------------*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_REGISTRY_H
#define NEUROSHARD_COSTMODEL_REGISTRY_H

#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Diagnostics.h"

#include <memory>
#include <string_view>

namespace neuroshard {

/// "roofline" or "reference"; an error listing the names otherwise.
Expected<std::unique_ptr<CostModel>> makeCostModel(std::string_view name);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_REGISTRY_H
