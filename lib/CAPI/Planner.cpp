//===- Planner.cpp - Planning from JSON to JSON, for C --------------------===//

#include "neuroshard-c/Planner.h"

#include "PlanRequest.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Planner/PlacementPolicy.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Serialization/SearchJson.h"

#include <cstdlib>
#include <cstring>
#include <exception>

using namespace neuroshard;
using namespace neuroshard::capi;

namespace {

/// The planning error for wrong input; the first error is the message.
PlanningError planningErrorOf(const Diagnostics &errors) {
  PlanningError result;
  for (const Diagnostic &error : errors)
    result.details.push_back(error.str());
  if (result.details.empty())
    return result;
  result.message = result.details.front();
  result.details.erase(result.details.begin());
  return result;
}

/// Null when there is no memory.
char *copyOf(const std::string &text) {
  auto *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (copy)
    std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

int32_t fail(int32_t status, const PlanningError &error, char **errorJson) {
  if (errorJson)
    *errorJson = copyOf(writePlanningError(error));
  return status;
}

int32_t failOnInput(const Diagnostics &errors, char **errorJson) {
  return fail(NEUROSHARD_BAD_INPUT, planningErrorOf(errors), errorJson);
}

int32_t failOnNull(const char *argument, char **errorJson) {
  return failOnInput({{argument, "expected a text, got a null pointer"}},
                     errorJson);
}

/// Reports a fault of the library, by a limit that the planner does not have.
int32_t failInside(const char *what, char **errorJson) {
  if (errorJson)
    *errorJson = nullptr;
  try {
    std::string message = "{\n \"limit\": \"internal\",\n \"message\": \"";
    for (const char *c = what; *c; ++c)
      message += *c == '"' || *c == '\\' || *c < ' ' ? '\'' : *c;
    message += "\",\n \"details\": [],\n \"advice\": \"\"\n}";
    if (errorJson)
      *errorJson = copyOf(message);
  } catch (...) {
    // No memory for a message; the status says it.
  }
  return NEUROSHARD_INTERNAL_ERROR;
}

/// Runs `body`; what it throws becomes a status.
template <typename Body> int32_t guarded(char **errorJson, const Body &body) {
  try {
    if (errorJson)
      *errorJson = nullptr;
    return body();
  } catch (const std::exception &error) {
    return failInside(error.what(), errorJson);
  } catch (...) {
    return failInside("unknown exception", errorJson);
  }
}

int32_t plan(const char *workloadJson, const char *optionsJson,
             NeuroShardProgressCallback progress, void *userData,
             char **resultJson, char **errorJson) {
  Expected<PlanRequest> request =
      readRequest(workloadJson, optionsJson ? optionsJson : "");
  if (!request)
    return failOnInput(request.error(), errorJson);
  if (progress)
    request->options.progress = [&](const SearchProgress &now) {
      const std::string phase(now.phase);
      NeuroShardProgress shown = {sizeof shown, now.seconds, now.share,
                                  now.bestCostMs, phase.c_str()};
      return progress(&shown, userData) != 0;
    };
  auto result = search(request->problem, *request->model, request->options);
  if (!result)
    return fail(result.error().limit == Limit::BadInput ? NEUROSHARD_BAD_INPUT
                                                        : NEUROSHARD_NO_PLAN,
                result.error(), errorJson);
  *resultJson = copyOf(writeSearchResult(
      *result, remarksOnPlan(request->problem, result->plan, *request->model),
      assumptionsOf(request->problem, request->options.objective)));
  return *resultJson ? NEUROSHARD_OK : failInside("out of memory", errorJson);
}

int32_t verifyPlan(const char *workloadJson, const char *planJson,
                   char **errorJson) {
  Expected<ShardingProblem> problem = parseWorkload(workloadJson);
  if (!problem)
    return failOnInput(problem.error(), errorJson);
  if (problem->topology.devices.empty())
    return failOnInput({{"topology", "the workload has none"}}, errorJson);
  Expected<ShardingPlan> read = parsePlan(planJson);
  if (!read)
    return failOnInput(read.error(), errorJson);
  Diagnostics errors = verify(*read, *problem);
  return errors.empty() ? NEUROSHARD_OK : failOnInput(errors, errorJson);
}

} // namespace

extern "C" {

const char *neuroshardVersion(void) { return NEUROSHARD_VERSION; }

void neuroshardStringFree(char *text) { std::free(text); }

int32_t neuroshardPlan(const char *workloadJson, const char *optionsJson,
                       NeuroShardProgressCallback progress, void *userData,
                       char **resultJson, char **errorJson) {
  return guarded(errorJson, [&] {
    if (!resultJson)
      return failOnInput({{"resultJson", "expected a place for the result, got "
                                         "a null pointer"}},
                         errorJson);
    *resultJson = nullptr;
    if (!workloadJson)
      return failOnNull("workloadJson", errorJson);
    return plan(workloadJson, optionsJson, progress, userData, resultJson,
                errorJson);
  });
}

int32_t neuroshardVerifyPlan(const char *workloadJson, const char *planJson,
                             char **errorJson) {
  return guarded(errorJson, [&] {
    if (!workloadJson)
      return failOnNull("workloadJson", errorJson);
    if (!planJson)
      return failOnNull("planJson", errorJson);
    return verifyPlan(workloadJson, planJson, errorJson);
  });
}

} // extern "C"
