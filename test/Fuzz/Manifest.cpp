//===- Manifest.cpp - Fuzzes the reader of manifests and layouts ----------===//

#include "neuroshard/Artifact/Manifest.h"

#include "Fuzz.h"
#include "JsonMutator.h"
#include "RandomManifest.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/StepTraffic.h"

using namespace neuroshard;
using namespace neuroshard::fuzz;

/// Prices a short step of a manifest that has been accepted.
static void priceStep(const Manifest &manifest) {
  auto devices = static_cast<size_t>(manifest.numDevices);
  StepLoad load;
  load.distinctRows = [](int32_t, const Range &, const Readers &) { return 1; };
  for (const ExchangeLayout &layout : manifest.layouts) {
    auto ids =
        std::make_shared<const std::vector<int64_t>>(layout.buckets.size(), 2);
    load.exchanges.push_back(
        {std::vector<int64_t>(devices, 8), {devices, std::move(ids)}});
  }
  for (Engine engine : {Engine::Cpu, Engine::Gpu})
    deviceTraffic(manifest, manifest.layouts, load, engine);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    Manifest manifest = parseManifest(std::string(textOf(data, size)));
    std::string written = writeManifest(manifest);
    require(writeManifest(parseManifest(written)) == written,
            "a manifest that is written is read as the same");
    priceStep(manifest);
  } catch (const RuntimeError &) {
  }
  return 0;
}

/// Begins with random models and plans.
static size_t mutateManifest(uint8_t *data, size_t size, size_t maxSize,
                             unsigned seed) {
  return mutateDrawnJson(data, size, maxSize, seed, [](std::mt19937 &random) {
    return writeManifest(test::randomManifest(random));
  });
}

NEUROSHARD_FUZZ_MUTATOR(mutateManifest)
