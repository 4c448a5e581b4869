//===- Requests.cpp - Checks of what Python asks the planner --------------===//

#include "Requests.h"

#include "Errors.h"

#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/SearchJson.h"

namespace nb = nanobind;
using namespace neuroshard;

SearchOptions python::readOptions(std::string_view json,
                                  std::unique_ptr<PlacementPolicy> *policy) {
  Expected<SearchRequest> request = parseSearchRequest(json);
  if (!request)
    throw nb::value_error(toString(request.error()).c_str());
  if (policy && request->options.algorithm == Algorithm::DreamShard) {
    *policy =
        valueOrRaise(readPlacementPolicy(request->policy), "UnknownPolicy");
    request->options.policy = policy->get();
  }
  return std::move(request->options);
}

void python::requireServing(const ShardingProblem &problem,
                            const CostModelHandle &model,
                            const ObjectiveOptions &objective) {
  Diagnostics errors = checkObjective(*model.model, objective);
  for (Diagnostic &error : checkMode(problem, *model.model))
    errors.push_back(std::move(error));
  if (!errors.empty())
    raise("CostModelError", toString(errors));
}

void python::requireValid(const ShardingProblem &problem,
                          const ShardingPlan &plan) {
  Diagnostics errors = verify(plan, problem);
  if (!errors.empty())
    raise("InvalidPlan", toPython(errors));
}
