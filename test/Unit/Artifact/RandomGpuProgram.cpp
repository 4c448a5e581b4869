//===- RandomGpuProgram.cpp - Random records of GPU programs --------------===//

#include "RandomGpuProgram.h"

using namespace neuroshard;

GpuProgram neuroshard::test::randomGpuProgram(std::mt19937 &random) {
  auto below = [&](int32_t count) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(count));
  };
  GpuProgram program;
  program.module = "0123456789abcdef0123456789abcdef01234567";
  program.images = {{"sm_90", "p.sm_90.cubin"}, {"ptx", "p.ptx"}};
  if (below(2))
    program.emulated = {"", "p.emulated.so"};
  program.kernels = {"nsg_lookup", "nsg_weight_gradient", "nsg_expand",
                     "nsg_ranges", "nsg_find_places",     "nsg_partials"};
  for (const char *kernel :
       {kUpdateKernel, kReduceKernel, kApplyKernel, kUpdateBySumsKernel})
    for (int64_t variant = 0; variant < 9; ++variant)
      program.kernels.push_back(nameOfBody(kernel, variant));
  for (const char *kernel : kRoutingKernels)
    program.kernels.push_back(kernel);
  for (int32_t i = 1 + below(3); i > 0; --i) {
    GpuSlot slot;
    slot.dim = 1 + below(64);
    slot.element = static_cast<ElementType>(below(3));
    slot.elementStates = below(3);
    slot.twoPhase = below(2);
    if (slot.twoPhase)
      slot.reduceVariant = slot.applyVariant = below(9);
    else if (below(2))
      slot.updateVariant = below(9);
    else
      slot.updateVariant = slot.rowSumsVariant = slot.sumsUpdateVariant =
          below(9);
    slot.partialVariant = below(9);
    program.slots.push_back(slot);
  }
  for (int32_t i = below(4); i > 0; --i) {
    GpuLookup lookup;
    lookup.slot = below(static_cast<int32_t>(program.slots.size()));
    lookup.idBytes = below(2) ? 4 : 8;
    lookup.pooled = below(2);
    lookup.weighted = below(2);
    lookup.output = static_cast<ElementType>(below(3));
    lookup.variant = below(9);
    lookup.meanVariant = below(9) - 1;
    lookup.fixedVariant = below(9) - 1;
    lookup.fixedMeanVariant = below(9) - 1;
    lookup.itemsPerBlock = 1 + below(9);
    lookup.gradientVariant = below(9) - 1;
    lookup.gradientItemsPerBlock = 1 + below(9);
    program.lookups.push_back(lookup);
  }
  return program;
}
