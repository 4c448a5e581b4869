//===- Workload.cpp - Fuzzes the reader of workloads ----------------------===//

#include "Fuzz.h"
#include "JsonMutator.h"
#include "neuroshard/Serialization/Json.h"

using namespace neuroshard;
using namespace neuroshard::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Expected<ShardingProblem> problem = parseWorkload(textOf(data, size));
  if (!problem) {
    require(!problem.error().empty(), "a refused workload has an error");
    return 0;
  }
  std::string written = writeWorkload(*problem);
  Expected<ShardingProblem> again = parseWorkload(written);
  require(again.has_value(), "a workload that is written can be read");
  require(writeWorkload(*again) == written, "it is the same then");
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateJson)
