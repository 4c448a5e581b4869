//===- Topology.cpp - Fuzzes the readers of topologies in short texts -----===//

#include "neuroshard/Model/Topology.h"
#include "Fuzz.h"
#include "TokenMutator.h"

using namespace neuroshard;
using namespace neuroshard::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Expected<Topology> topology = parseTopology(textOf(data, size));
  if (topology)
    require(check(*topology).empty(), "a topology that is read is sound");
  else
    require(!topology.error().empty(), "a refused topology has an error");
  Expected<int64_t> bytes = parseByteSize(textOf(data, size));
  require(bytes ? *bytes >= 0 : !bytes.error().empty(),
          "a size is at least 0, or refused with an error");
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateTokens)
