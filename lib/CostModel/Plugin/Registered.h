//===- Registered.h - Models that were registered by name -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_PLUGIN_REGISTERED_H
#define NEUROSHARD_LIB_COSTMODEL_PLUGIN_REGISTERED_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Planner/CostModel.h"

#include <memory>
#include <optional>
#include <string_view>

namespace neuroshard {

/// The registered model of this name, whose answers are checked; null if there
/// is none. The first call loads the libraries of the environment.
Expected<std::unique_ptr<CostModel>> makeRegistered(std::string_view name,
                                                    const Topology &topology);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_PLUGIN_REGISTERED_H
