//===- PlanRequest.cpp - A plan request of a C caller ---------------------===//

#include "PlanRequest.h"

#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Serialization/SearchJson.h"

using namespace neuroshard;
using namespace neuroshard::capi;

namespace {

/// The errors of an option's value, with the option as their place.
template <typename T>
tl::unexpected<Diagnostics> atOption(std::string_view name,
                                     const Expected<T> &failed) {
  Diagnostics errors = failed.error();
  for (Diagnostic &error : errors) {
    std::string place = "options.";
    place.append(name);
    if (!error.where.empty() && error.where != name)
      place.append(": ").append(error.where);
    error.where = std::move(place);
  }
  return tl::unexpected(std::move(errors));
}

Expected<SearchRequest> readOptions(std::string_view text) {
  return parseSearchRequest(text).map_error([](Diagnostics errors) {
    for (Diagnostic &error : errors)
      error.where = error.where.empty() || error.where == "json"
                        ? "options"
                        : "options." + error.where;
    return errors;
  });
}

/// The options that change the problem.
Expected<void> changeProblem(const SearchRequest &search,
                             ShardingProblem &problem) {
  if (!search.topology.empty()) {
    Expected<Topology> topology = topologyNamed(search.topology);
    if (!topology)
      return atOption("topology", topology);
    if (!problem.topology.devices.empty() && problem.topology != *topology)
      return failure("options.topology", "the workload has another topology");
    problem.topology = *std::move(topology);
  }
  if (problem.topology.devices.empty())
    return failure("topology", "the workload has none; name one with the "
                               "option \"topology\", such as \"8xH200\"");
  if (search.target.empty())
    return {};
  auto target = parseTarget(search.target);
  if (!target)
    return failure("options.target", "expected " + choicesOf<Target>());
  problem.target = *target;
  return {};
}

/// Only algorithm dreamshard has a policy.
Expected<void> readPolicy(const SearchRequest &search, PlanRequest &request) {
  SearchOptions &options = request.options;
  if (options.algorithm != Algorithm::DreamShard)
    return {};
  Expected<std::unique_ptr<PlacementPolicy>> policy =
      readPlacementPolicy(search.policy);
  if (!policy)
    return atOption("policy", policy);
  request.policy = *std::move(policy);
  options.policy = request.policy.get();
  return {};
}

} // namespace

Expected<PlanRequest> capi::readRequest(std::string_view workloadJson,
                                        std::string_view optionsJson) {
  PlanRequest request;
  Expected<ShardingProblem> problem = parseWorkload(workloadJson);
  if (!problem)
    return tl::unexpected(problem.error());
  request.problem = *std::move(problem);
  Expected<SearchRequest> read = readOptions(optionsJson);
  if (!read)
    return tl::unexpected(read.error());
  request.options = std::move(read->options);
  if (auto changed = changeProblem(*read, request.problem); !changed)
    return tl::unexpected(changed.error());
  if (auto policy = readPolicy(*read, request); !policy)
    return tl::unexpected(policy.error());
  Expected<std::unique_ptr<CostModel>> model =
      makeCostModel(read->costModel, request.problem.topology);
  if (!model)
    return atOption("cost_model", model);
  request.model = *std::move(model);
  Diagnostics errors =
      checkObjective(*request.model, request.options.objective);
  for (Diagnostic &error : checkMode(request.problem, *request.model))
    errors.push_back(std::move(error));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return request;
}
