//===- Backward.cpp - The update of a step --------------------------------===//
//
// Kernels read gradients in the caller's memory, at offsets from the first one.
// If all offsets are those that the expansion expected, only the address of the
// first is new; else the ids are expanded again.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Driver/Status.h"
#include "LookupParts.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <numeric>

namespace neuroshard::cuda {
namespace {

/// Blocks per block that fits on the GPU: with several waves, blocks of short
/// runs balance those of long ones.
constexpr int64_t kWaves = 4;

std::vector<GradientPlace> placesOf(std::span<const nsc_gradient> gradients,
                                    const float *base) {
  std::vector<GradientPlace> places;
  for (const nsc_gradient &gradient : gradients) {
    if (!gradient.gradient) {
      places.push_back({});
      continue;
    }
    intptr_t bytes = reinterpret_cast<intptr_t>(gradient.gradient) -
                     reinterpret_cast<intptr_t>(base);
    places.push_back({bytes / intptr_t(sizeof(float)), gradient.stride});
  }
  return places;
}

} // namespace

void Device::setStep(float learningRate, int64_t step, CUstream stream) {
  // A graph may be replayed next: its sort must wait for one still running.
  beginCall(stream, gpu.isCapturing(stream));
  learningRates.set(learningRate, step, stream);
}

void Device::setStepSizes(std::span<const runtime::StepSize> ofSlot,
                          CUstream stream) {
  beginCall(stream, gpu.isCapturing(stream));
  learningRates.setSizes(ofSlot, stream);
}

StepPlan &Device::planOfBackward(size_t numGradients, bool capturing) {
  if (!trained)
    fail("nsc_backward comes after an nsc_forward with training, once, and "
         "without an nsc_prepare between them that needed more memory");
  if (trained->captured != capturing)
    fail("nsc_backward is ", capturing ? "" : "not ",
         "captured into a graph, but its nsc_forward is",
         capturing ? " not" : "", "; capture both or none");
  if (trained->parts.size() != numGradients)
    fail("expected ", trained->parts.size(),
         " gradients, one per part of nsc_forward, found ", numGradients);
  return *trained;
}

/// Whether an update or a gradient of sample weights reads this part.
bool Device::hasGradients(const StepPlan &plan, size_t part) const {
  const Part &spec = plan.parts[part];
  const GpuLookup &lookup =
      binding.program.lookups[static_cast<size_t>(spec.lookup)];
  return keys.hasPositions(static_cast<size_t>(lookup.slot)) &&
         spec.id_end > spec.id_begin && plan.step.tasks[part].items > 0;
}

/// Returns the first of the gradients, null if none is needed.
const float *
Device::checkGradients(const StepPlan &plan,
                       std::span<const nsc_gradient> gradients) const {
  const float *base = nullptr;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const nsc_gradient &gradient = gradients[i];
    auto lookup = static_cast<size_t>(plan.parts[i].lookup);
    const GpuSlot &slot =
        binding.program
            .slots[static_cast<size_t>(binding.program.lookups[lookup].slot)];
    if (!gradient.gradient) {
      bool needed = slot.trainable() || gradient.weight_gradient;
      if (needed && hasGradients(plan, i))
        fail("part ", i, ", ", binding.nameOf(lookup),
             ": its gradient is null");
      continue;
    }
    uintptr_t alignment = slot.dim % 4 == 0 ? 16 : sizeof(float);
    if (!isMultiple(gradient.gradient, alignment) ||
        gradient.stride * static_cast<int64_t>(sizeof(float)) %
                static_cast<int64_t>(alignment) !=
            0)
      fail("part ", i, ", ", binding.nameOf(lookup),
           ": expected a gradient and a stride that are multiples of ",
           alignment, " bytes");
    // With a stride of 0 all items share one gradient.
    if (plan.step.tasks[i].items > 1 && gradient.stride != 0 &&
        (gradient.stride < slot.dim || gradient.stride > kMaxStride))
      fail("part ", i, ", ", binding.nameOf(lookup),
           ": expected a gradient's stride of 0 or from ", slot.dim, " to ",
           kMaxStride, ", found ", gradient.stride);
    if (!base)
      base = gradient.gradient;
  }
  return base;
}

/// Lets kernels read the gradients: their places, those of the gradients of
/// sample weights, and the ids' order.
void Device::bindGradients(StepPlan &plan,
                           std::span<const nsc_gradient> gradients,
                           CUstream stream) {
  const float *base = checkGradients(plan, gradients);
  if (unjoined == &plan) {
    plan.sorted.holdBack(stream);
    unjoined = nullptr;
  }
  std::vector<GradientPlace> places = placesOf(gradients, base);
  bool moved = places != plan.places;
  if (moved)
    placeGradients(plan.step, places);
  addWeightGradients(binding, plan.step, plan.parts, gradients, base);
  Uploader uploader(gpu, plan, stream, uploads, ring);
  uploader.putTasks();
  putSorted(plan, base, uploader);
  uploader.finish();
  plan.places = places;
  lastPlaces = std::move(places);
  lastLookups.clear();
  for (const Part &part : plan.parts)
    lastLookups.push_back(part.lookup);
  if (moved && plan.step.numPositions > 0)
    expand(plan, &plan.trainingArray.as<TrainingHead>()->again, stream);
}

void Device::launchWeightGradients(const StepPlan &plan,
                                   CUstream stream) const {
  const std::vector<int64_t> &blocks = plan.step.blocks[GradientBlocks];
  kernels.launch(Kernel::WeightGradient,
                 std::accumulate(blocks.begin(), blocks.end(), int64_t{0}),
                 stream, plan.tasks.as<nsg_lookup_task>(),
                 plan.taskOfBlock[GradientBlocks].as<int32_t>());
}

void Device::backward(std::span<const nsc_gradient> gradients,
                      CUstream stream) {
  StepPlan &plan = planOfBackward(gradients.size(), gpu.isCapturing(stream));
  if (!learningRates.isSet())
    fail("the learning rate is not set; call nsc_set_step first");
  bindGradients(plan, gradients, stream);
  if (plan.step.numPositions > 0) {
    launchWeightGradients(plan, stream);
    findPlaces(plan, stream);
    addChunks(plan, stream);
    updateWith(Kernel::Update, &GpuSlot::updateVariant, plan, stream);
    updateWith(Kernel::Reduce, &GpuSlot::reduceVariant, plan, stream);
  }
  reduced = &plan;
  trained = nullptr;
}

void Device::computeWeightGradients(std::span<const Part> parts,
                                    std::span<const nsc_gradient> gradients,
                                    CUstream stream) {
  bool capturing = gpu.isCapturing(stream);
  beginCall(stream, capturing);
  StepPlan &plan = planFor(parts, StepKind::Inference, stream, capturing);
  const float *base = checkGradients(plan, gradients);
  placeGradients(plan.step, placesOf(gradients, base));
  addWeightGradients(binding, plan.step, plan.parts, gradients, base);
  Uploader uploader(gpu, plan, stream, uploads, ring);
  uploader.putTasks();
  uploader.finish();
  launchWeightGradients(plan, stream);
}

/// Lets the update find rows in caches. From here on keys tell no rows.
void Device::findPlaces(const StepPlan &plan, CUstream stream) const {
  if (!plan.step.cachedParts.empty())
    kernels.launch(Kernel::FindPlaces,
                   ceilDivide(plan.step.numPositions, NSG_THREADS), stream,
                   plan.cachedParts.as<nsg_cached_part>(),
                   static_cast<int32_t>(plan.step.cachedParts.size()),
                   plan.sortedArray.as<nsg_sorted>());
}

/// Sums the gradients of each chunk of a long run.
void Device::addChunks(const StepPlan &plan, CUstream stream) const {
  if (!keys.updated.empty())
    kernels.launch(
        Kernel::Partials,
        blocksFor(Kernel::Partials, plan.step.numPositions / NSG_CHUNK), stream,
        plan.trainingArray.as<nsg_slot>(kSlotsBegin),
        static_cast<int32_t>(keys.updated.size()),
        plan.sortedArray.as<nsg_sorted>());
}

/// Launches the bodies of a kernel on the runs of the updated slots.
/// `variants`: of each, -1 for none.
void Device::launchOnRuns(Kernel kernel, std::span<const int32_t> variants,
                          const StepPlan &plan, CUstream stream) const {
  launchBodies(kernel, variants, plan.step.rowsOfUpdated,
               plan.trainingArray.as<nsg_slot>(kSlotsBegin),
               plan.sortedArray.as<nsg_sorted>(), stream);
}

void Device::updateWith(Kernel kernel, int32_t GpuSlot::*variant,
                        const StepPlan &plan, CUstream stream) const {
  std::vector<int32_t> variants;
  for (int32_t slot : keys.updated)
    variants.push_back(binding.program.slots[static_cast<size_t>(slot)].*
                       variant);
  launchOnRuns(kernel, variants, plan, stream);
}

/// One launch for neighbours with the same body. `items`: the most of each
/// slot.
void Device::launchBodies(Kernel kernel, std::span<const int32_t> variants,
                          std::span<const int64_t> items, const nsg_slot *slots,
                          const nsg_sorted *sorted, CUstream stream) const {
  for (size_t first = 0, end = 0; first < variants.size(); first = end) {
    int64_t most = 0;
    for (; end < variants.size() && variants[end] == variants[first]; ++end)
      most += items[end];
    if (variants[first] < 0)
      continue;
    KernelBody body(kernel, variants[first]);
    kernels.launch(body, blocksFor(body, most), stream, slots,
                   static_cast<int32_t>(first), static_cast<int32_t>(end),
                   sorted);
  }
}

/// Blocks of a kernel whose warps take at least one of at most `items` items.
int64_t Device::blocksFor(KernelBody kernel, int64_t items) const {
  constexpr int64_t kWarps = NSG_THREADS / NSG_WARP;
  return std::min(kernels.residentBlocks(kernel) * kWaves,
                  ceilDivide(items, kWarps));
}

// Sums of rows take the sort of an update, and kernels that write the sum where
// the row is.

void Device::addUpRows(std::span<const Part> parts,
                       std::span<const nsc_gradient> gradients,
                       std::span<const runtime::SlotSums> sums,
                       CUstream stream) {
  beginCall(stream, /*capturing=*/false);
  StepPlan &plan =
      planFor(parts, StepKind::RowSums, stream, /*capturing=*/false);
  plan.sums.assign(sums.begin(), sums.end());
  Uploader uploader(gpu, plan, stream, uploads, ring);
  putTraining(plan, uploader);
  uploader.finish();
  expandAndSort(plan, stream);
  bindGradients(plan, gradients, stream);
  if (plan.step.numPositions == 0)
    return;
  addChunks(plan, stream);
  std::vector<int32_t> variants(keys.updated.size(), -1);
  for (const runtime::SlotSums &given : sums)
    variants[updatedIndex(given.slot)] =
        binding.program.slots[static_cast<size_t>(given.slot)].rowSumsVariant;
  launchOnRuns(Kernel::Reduce, variants, plan, stream);
}

void Device::updateRows(std::span<const runtime::SlotSums> sums,
                        CUstream stream) {
  beginCall(stream, /*capturing=*/false);
  auto variantOf = [&](const runtime::SlotSums &given) {
    return binding.program.slots[static_cast<size_t>(given.slot)]
        .sumsUpdateVariant;
  };
  std::vector<runtime::SlotSums> inOrder(sums.begin(), sums.end());
  std::stable_sort(inOrder.begin(), inOrder.end(),
                   [&](const auto &a, const auto &b) {
                     return variantOf(a) < variantOf(b);
                   });
  std::vector<nsg_slot> slots;
  std::vector<int32_t> variants, rowsBegin = {0};
  std::vector<int64_t> rows;
  for (const runtime::SlotSums &given : inOrder) {
    nsg_slot &entry =
        slots.emplace_back(describeSlot(static_cast<size_t>(given.slot)));
    entry.reduced = given.sums;
    entry.norms = given.counts;
    entry.partial_variant = -1;
    variants.push_back(variantOf(given));
    rows.push_back(given.rows);
    rowsBegin.push_back(rowsBegin.back() + static_cast<int32_t>(given.rows));
  }
  Uploader uploader(gpu, sumsUpdate, stream, uploads, ring);
  uploader.put(sumsUpdate.tasks, std::span<const int32_t>(rowsBegin));
  uploader.put(sumsUpdate.trainingArray, std::span<const nsg_slot>(slots));
  nsg_sorted sorted = {};
  sorted.run_begin = sumsUpdate.tasks.writable<int32_t>(0);
  uploader.put(sumsUpdate.sortedArray, std::span<const nsg_sorted>(&sorted, 1));
  uploader.finish();
  launchBodies(Kernel::UpdateBySums, variants, rows,
               sumsUpdate.trainingArray.as<nsg_slot>(),
               sumsUpdate.sortedArray.as<nsg_sorted>(), stream);
}

void Device::applyNorms(CUstream stream) {
  if (!reduced)
    fail("nsc_backward_apply comes after nsc_backward, once");
  if (reduced->captured != gpu.isCapturing(stream))
    fail("nsc_backward and nsc_backward_apply must both be captured into a "
         "graph, or neither");
  if (reduced->step.numPositions > 0)
    updateWith(Kernel::Apply, &GpuSlot::applyVariant, *reduced, stream);
  reduced = nullptr;
}

/// The number of a slot among those that are updated; their number if it is
/// none of them.
size_t Device::updatedIndex(int32_t slot) const {
  return static_cast<size_t>(
      std::find(keys.updated.begin(), keys.updated.end(), slot) -
      keys.updated.begin());
}

size_t Device::twoPhaseIndex(int32_t slot) const {
  size_t index = updatedIndex(slot);
  if (index == keys.updated.size() ||
      !binding.program.slots[static_cast<size_t>(slot)].twoPhase)
    fail("slot ", slot,
         " has no norms: its optimizer has one phase, or it has no optimizer");
  return index;
}

void Device::sumByRow(std::span<const Part> parts,
                      std::span<const nsc_gradient> gradients,
                      CUstream stream) {
  beginCall(stream, /*capturing=*/false);
  StepPlan &plan =
      planFor(parts, StepKind::DistinctSums, stream, /*capturing=*/false);
  expandAndSort(plan, stream);
  bindGradients(plan, gradients, stream);
  if (plan.step.numPositions == 0)
    return;
  addChunks(plan, stream);
  updateWith(Kernel::Reduce, &GpuSlot::distinctSumsVariant, plan, stream);
}

const float *Device::sumsOf(int32_t slot) const {
  return stepMemory.reduced(updatedIndex(slot));
}

nsc_norms Device::normsOf(int32_t slot) const {
  size_t index = twoPhaseIndex(slot);
  if (!reduced)
    fail("the norms of slot ", slot,
         " are there between nsc_backward and nsc_backward_apply");
  return {stepMemory.norms(index), stepMemory.reducedRows(index),
          stepMemory.runBegin() + index,
          binding.tableOf(static_cast<size_t>(slot)).normsPerRow()};
}

DistinctRows Device::distinctRowsOf(int32_t slot) const {
  return {stepMemory.distinctKeys(), keys.keyBytes,
          keys.keyBegin[static_cast<size_t>(slot)],
          stepMemory.runBegin() + updatedIndex(slot)};
}

} // namespace neuroshard::cuda
