//===- PlanRequest.h - A plan request of a C caller -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CAPI_PLANREQUEST_H
#define NEUROSHARD_LIB_CAPI_PLANREQUEST_H

#include "neuroshard/Planner/Search.h"

#include <memory>
#include <string>
#include <string_view>

namespace neuroshard::capi {

/// The workload, changed by the options, and how to search.
struct PlanRequest {
  ShardingProblem problem;
  std::unique_ptr<CostModel> model;
  std::unique_ptr<PlacementPolicy> policy;
  SearchOptions options;
};

/// Reads both texts. The options are an object or empty; unknown fields and
/// values out of range are errors under "options".
Expected<PlanRequest> readRequest(std::string_view workloadJson,
                                  std::string_view optionsJson);

} // namespace neuroshard::capi

#endif // NEUROSHARD_LIB_CAPI_PLANREQUEST_H
