//===- PlanJson.h - Plans inside other JSON documents -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_SERIALIZATION_PLANJSON_H
#define NEUROSHARD_LIB_SERIALIZATION_PLANJSON_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <nlohmann/json.hpp>

namespace neuroshard::json {

/// What parsePlan() and writePlan() read and write as text. Places of errors
/// begin at the plan.
Expected<ShardingPlan> planOf(const nlohmann::ordered_json &value);
nlohmann::ordered_json toJson(const ShardingPlan &plan);

} // namespace neuroshard::json

#endif // NEUROSHARD_LIB_SERIALIZATION_PLANJSON_H
