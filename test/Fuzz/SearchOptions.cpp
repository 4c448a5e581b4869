//===- SearchOptions.cpp - Fuzzes the reader of search options ------------===//

#include "Fuzz.h"
#include "JsonMutator.h"
#include "neuroshard/Serialization/SearchJson.h"

using namespace neuroshard;
using namespace neuroshard::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Expected<SearchRequest> request = parseSearchRequest(textOf(data, size));
  if (!request)
    require(!request.error().empty(), "refused options have an error");
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateJson)
