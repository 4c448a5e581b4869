//===- PlannerCAPI.cpp - Fuzzes the planner's C API -----------------------===//
///
/// \file
/// An input is an object with the arguments "workload", "options" and "plan":
/// objects are given as their texts, texts as they are, all else as null
/// pointers.
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "JsonMutator.h"
#include "neuroshard-c/Planner.h"
#include "neuroshard/Support/InputLimits.h"

#include <nlohmann/json.hpp>

#include <optional>

using namespace neuroshard;
using namespace neuroshard::fuzz;
using Json = nlohmann::ordered_json;

namespace {

class Argument {
public:
  Argument(const Json &input, const char *name) {
    auto value = input.find(name);
    if (value == input.end())
      return;
    if (value->is_string())
      text = value->get<std::string>();
    else if (value->is_structured())
      text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  const char *get() const { return text ? text->c_str() : nullptr; }

private:
  std::optional<std::string> text;
};

/// What the header says of status and texts.
void checkAnswer(int32_t status, bool hasResult, char *error) {
  require(status >= NEUROSHARD_OK && status <= NEUROSHARD_BAD_INPUT,
          "the library has no fault of its own");
  require(hasResult == (status == NEUROSHARD_OK),
          "there is a result if the call succeeds");
  require((error == nullptr) == (status == NEUROSHARD_OK),
          "there is an error if the call fails");
  require(!error || Json::accept(error), "an error is JSON");
  neuroshardStringFree(error);
}

int32_t endSearch(const NeuroShardProgress *, void *) { return 0; }

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = textOf(data, size);
  if (isNestedTooDeep(text))
    return 0;
  Json input = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!input.is_object())
    return 0;
  Argument workload(input, "workload"), options(input, "options"),
      plan(input, "plan");
  char *result = nullptr, *error = nullptr;
  int32_t status = neuroshardPlan(workload.get(), options.get(), endSearch,
                                  nullptr, &result, &error);
  checkAnswer(status, result, error);
  neuroshardStringFree(result);
  status = neuroshardVerifyPlan(workload.get(), plan.get(), &error);
  checkAnswer(status, status == NEUROSHARD_OK, error);
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateJson)
