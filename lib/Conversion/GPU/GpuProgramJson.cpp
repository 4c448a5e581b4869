//===- GpuProgramJson.cpp - What a runtime has to know of a program -------===//

#include "neuroshard/Conversion/GPU/GpuProgramJson.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace neuroshard {

static llvm::json::Object describe(const GpuLookup &lookup,
                                   ElementType output) {
  return llvm::json::Object{
      {"slot", lookup.spec.slot},
      {"id_bytes", lookup.spec.id == IdType::I32 ? 4 : 8},
      {"pooled", lookup.spec.pooled},
      {"weighted", lookup.spec.weighted},
      {"output", llvm::StringRef(toString(output))},
      {"variant", lookup.variant},
      {"mean_variant", lookup.meanVariant},
      {"fixed_variant", lookup.fixedVariant},
      {"fixed_mean_variant", lookup.fixedMeanVariant},
      {"items_per_block", lookup.itemsPerBlock},
      {"gradient_variant", lookup.gradientVariant},
      {"gradient_items_per_block", lookup.gradientItemsPerBlock}};
}

static llvm::json::Object describe(const GpuSlot &slot) {
  OptimizerStates states = slot.spec.optimizer
                               ? optimizerStates(slot.spec.optimizer->kind)
                               : OptimizerStates();
  return llvm::json::Object{
      {"dim", slot.spec.dim},
      {"element", llvm::StringRef(toString(slot.spec.element))},
      {"state_elements", states.perElement},
      {"state_rows", states.perRow},
      {"two_phase", slot.spec.twoPhase},
      {"update_variant", slot.updateVariant},
      {"reduce_variant", slot.reduceVariant},
      {"apply_variant", slot.applyVariant},
      {"partial_variant", slot.partialVariant},
      {"small_sums_variant", slot.smallSumsVariant},
      {"small_update_variant", slot.smallUpdateVariant}};
}

std::string writeGpuProgram(const GpuProgram &program,
                            const GpuProgramFiles &files) {
  llvm::json::Array images, kernels, lookups, slots;
  for (const GpuProgramFile &image : files.images)
    images.push_back(llvm::json::Object{
        {"arch", image.arch}, {"file", image.file}, {"xxh3", image.hash}});
  for (llvm::StringRef kernel : program.kernels)
    kernels.push_back(kernel);
  for (const GpuLookup &lookup : program.lookups)
    lookups.push_back(describe(lookup, program.output));
  for (const GpuSlot &slot : program.slots)
    slots.push_back(describe(slot));
  llvm::json::Object object{
      {"schema", kGpuProgramSchema},   {"abi", NSG_VERSION},
      {"module", files.moduleHash},    {"images", std::move(images)},
      {"kernels", std::move(kernels)}, {"lookups", std::move(lookups)},
      {"slots", std::move(slots)}};
  if (files.emulated)
    object["emulated"] = llvm::json::Object{{"file", files.emulated->file},
                                            {"xxh3", files.emulated->hash}};
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::formatv("{0:2}", llvm::json::Value(std::move(object)))
         << "\n";
  return text;
}

} // namespace neuroshard
