//===- Pipelines.cpp - Fuzzes the passes and pipelines --------------------===//
///
/// \file
/// Each input goes through one pass or pipeline, which a hash of the input
/// picks. It either makes IR that the verifiers accept or says why it does not.
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "MlirInput.h"
#include "TokenMutator.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <string>

using namespace mlir;
using namespace neuroshard::fuzz;

/// Short searches: what they find does not matter here.
#define SHORT "evaluation-budget=20 deadline-s=1 threads=1"
#define GIVEN SHORT " topology=2x2xCPU batch=64"

static constexpr std::array kPipelines = {
    "neuroshard-to-planned{" SHORT "}",
    "neuroshard-to-planned{" GIVEN "}",
    "neuroshard-to-sharded{" SHORT " training}",
    "neuroshard-to-partitioned{" SHORT "}",
    "neuroshard-to-partitioned{" SHORT " training}",
    "neuroshard-to-partitioned{" GIVEN " training}",
    "neuroshard-to-partitioned{" GIVEN " training},neuroshard-to-native",
    "neuroshard-to-partitioned{" GIVEN " training},convert-neuroshard-to-gpu,"
    "neuroshard-gpu-simplify,neuroshard-gpu-to-nvvm",
    "neuroshard-to-partitioned{" GIVEN " training},convert-neuroshard-to-gpu,"
    "neuroshard-gpu-simplify,neuroshard-emulate-gpu",
    "neuroshard-reference{training}",
    "neuroshard-reference,canonicalize",
    "neuroshard-to-native",
    "convert-neuroshard-to-gpu",
    "neuroshard-gpu-simplify",
    "neuroshard-gpu-to-nvvm",
    "neuroshard-emulate-gpu",
    "convert-neuroshard-to-runtime",
    "neuroshard-keep-entry",
    "neuroshard-topology-from-grid{device-class=CPU}",
    "neuroshard-raise-lookups{jagged-arguments}",
    "neuroshard-raise-lookups,neuroshard-to-partitioned{" GIVEN "}",
    "neuroshard-outline",
    "neuroshard-outline,neuroshard-differentiate",
    "neuroshard-differentiate",
    "neuroshard-shard",
    "neuroshard-fuse",
    "neuroshard-partition",
    "neuroshard-verify-planned",
    "neuroshard-verify-sharded",
    "neuroshard-verify-partitioned",
    "neuroshard-lower-reference",
    "neuroshard-protect-arguments",
    "func.func(neuroshard-separate-results)",
    "neuroshard-order-reductions",
    "neuroshard-decompose-aggregates",
    "neuroshard-lower-strided-copies",
    "neuroshard-invoke-wrappers",
    "neuroshard-exact-math",
    "canonicalize,cse,symbol-dce,inline",
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext &context = freshContext();
  std::string_view input = textOf(data, size);
  OwningOpRef<ModuleOp> module = readModule(input, context);
  if (!module)
    return 0;
  PassManager passes(&context);
  uint64_t hash = llvm::xxh3_64bits(llvm::StringRef(input));
  require(succeeded(
              parsePassPipeline(kPipelines[hash % kPipelines.size()], passes)),
          "the pipeline is written as pass managers read it");
  ErrorCount errors(context);
  require(succeeded(passes.run(*module)) || errors.count() > 0,
          "a pass that fails says why");
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateTokens)
