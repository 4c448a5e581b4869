//===- Plan.cpp - Fuzzes the reader and the verifier of plans -------------===//

#include "Fuzz.h"
#include "JsonMutator.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

using namespace neuroshard;
using namespace neuroshard::fuzz;

/// What the plans are for: two tables on four CPUs.
static ShardingProblem makeProblem() {
  Expected<ShardingProblem> problem = parseWorkload(R"({
    "schema": "neuroshard.workload.v1", "batch": {"global_size": 64},
    "tables": [{"name": "user", "rows": 100, "dim": 8},
               {"name": "item", "rows": 50, "dim": 20}],
    "features": [{"name": "user", "table": "user", "mean_pooling": 1},
                 {"name": "item", "table": "item", "mean_pooling": 2}]})");
  require(problem.has_value(), "the workload is sound");
  problem->topology = *parseTopology("4xCPU");
  return *std::move(problem);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const ShardingProblem kProblem = makeProblem();
  Expected<ShardingPlan> plan = parsePlan(textOf(data, size));
  if (!plan) {
    require(!plan.error().empty(), "a refused plan has an error");
    return 0;
  }
  std::string written = writePlan(*plan);
  Expected<ShardingPlan> again = parsePlan(written);
  require(again.has_value(), "a plan that is written can be read");
  require(writePlan(*again) == written, "it is the same then");
  verify(*plan, kProblem);
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateJson)
