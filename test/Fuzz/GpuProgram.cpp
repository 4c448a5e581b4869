//===- GpuProgram.cpp - Fuzzes the reader of records of GPU programs ------===//

#include "neuroshard/Artifact/GpuProgram.h"

#include "Fuzz.h"
#include "JsonMutator.h"
#include "RandomGpuProgram.h"
#include "RandomManifest.h"
#include "neuroshard/Artifact/Error.h"

using namespace neuroshard;
using namespace neuroshard::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::mt19937 random(1);
  static const Manifest kManifest = test::randomManifest(random);
  try {
    GpuProgram program = parseGpuProgram(std::string(textOf(data, size)));
    std::string written = writeGpuProgram(program);
    require(writeGpuProgram(parseGpuProgram(written)) == written,
            "a record that is written is read as the same");
    checkGpuProgram(program, kManifest, 0);
    bindMeans(program, kManifest, 0);
    chooseImage(program, 90);
  } catch (const RuntimeError &) {
  }
  return 0;
}

/// Begins with random programs.
static size_t mutateProgram(uint8_t *data, size_t size, size_t maxSize,
                            unsigned seed) {
  return mutateDrawnJson(data, size, maxSize, seed, [](std::mt19937 &random) {
    return writeGpuProgram(test::randomGpuProgram(random));
  });
}

NEUROSHARD_FUZZ_MUTATOR(mutateProgram)
