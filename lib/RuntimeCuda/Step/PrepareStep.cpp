//===- PrepareStep.cpp - Prepares a step of a device ----------------------===//
//
// Finds a prepared step, or prepares one: its tasks, its memory and its arrays
// on the GPU, which are the arguments of its kernels.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Driver/SortLibrary.h"
#include "Driver/Status.h"
#include "LookupParts.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::cuda {
namespace {

std::vector<int32_t> lookupsOf(std::span<const Part> parts) {
  std::vector<int32_t> lookups;
  for (const Part &part : parts)
    lookups.push_back(part.lookup);
  return lookups;
}

} // namespace

void Device::prepare(std::span<const Part> parts, int32_t training,
                     CUstream stream) {
  checkTraining(training);
  if (gpu.isCapturing(stream))
    fail("nsc_prepare cannot be captured into a graph; call it before");
  beginCall(stream, false);
  planFor(parts, kindOf(training), stream, false);
}

StepPlan &Device::planFor(std::span<const Part> parts, StepKind kind,
                          CUstream stream, bool capturing) {
  bool training = kind != StepKind::Inference;
  StepPlan *plan = capturing ? nullptr : plans.find(parts, kind);
  bool current =
      plan && (!training || plan->generation == stepMemory.generation());
  if (current)
    return *plan;
  checkParts(binding, parts, training);
  if (!plan)
    plan = &plans.take(parts, capturing);
  for (StepPlan **user : {&trained, &reduced})
    if (*user == plan)
      *user = nullptr;
  try {
    fill(*plan, parts, kind, stream);
  } catch (...) {
    plans.drop(*plan);
    throw;
  }
  return *plan;
}

void Device::fill(StepPlan &plan, std::span<const Part> parts, StepKind kind,
                  CUstream stream) {
  bool training = kind != StepKind::Inference;
  badIds.wordOf(plan);
  // A bad id that this plan's kernels have found belongs to its old lookups.
  if (idCheck == runtime::IdCheck::Late && !plan.parts.empty() &&
      lookupsOf(plan.parts) != lookupsOf(parts))
    badIds.keep(plan);
  plan.parts.clear(); // matches nothing until it is complete
  plan.kind = kind;
  plan.step = makeTasks(binding, keys, parts, weights, training,
                        kernels.residentBlocks(Kernel::Lookup));
  plan.places = expectedPlaces(parts);
  placeGradients(plan.step, plan.places);
  if (training)
    reserveFor(plan);
  Uploader uploader(gpu, plan, stream, uploads, ring);
  uploader.putTasks();
  if (training) {
    putTraining(plan, uploader);
    putSorted(plan, nullptr, uploader);
    uploader.put(plan.cachedParts,
                 std::span<const nsg_cached_part>(plan.step.cachedParts));
  }
  uploader.finish();
  plan.generation = stepMemory.generation();
  plan.parts.assign(parts.begin(), parts.end());
}

void Device::reserveFor(const StepPlan &plan) {
  UpdateNeeds needs;
  needs.positions = plan.step.numPositions;
  for (size_t i = 0; i < keys.updated.size(); ++i) {
    const GpuSlot &slot =
        binding.program.slots[static_cast<size_t>(keys.updated[i])];
    bool keepsSums = plan.kind == StepKind::DistinctSums
                         ? slot.distinctSumsVariant >= 0
                         : slot.twoPhase;
    needs.reducedRows.push_back(keepsSums ? plan.step.rowsOfUpdated[i] : 0);
  }
  if (needs.positions > 0 && !keys.updated.empty()) {
    if (!sort)
      sort = findSort(gpu.driver);
    size_t bytes = 0;
    int result = sort(nullptr, &bytes, nullptr, keys.keyBytes, keys.endBit,
                      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                      needs.positions, nullptr);
    if (result != 0)
      failWith(NSC_CUDA_ERROR, "the sort cannot say what memory it needs for ",
               needs.positions, " ids: ", gpu.driver.text(result));
    needs.sortBytes = static_cast<int64_t>(bytes);
  }
  uint64_t before = stepMemory.generation();
  stepMemory.reserve(needs, plan.captured);
  if (before != stepMemory.generation())
    trained = reduced = nullptr; // the memory of their sort is freed
}

std::vector<GradientPlace>
Device::expectedPlaces(std::span<const Part> parts) const {
  return lookupsOf(parts) == lastLookups ? lastPlaces
                                         : placesOfResults(binding, parts);
}

/// The fields of a slot for updates by gradients and by sums.
nsg_slot Device::describeSlot(size_t slot) const {
  const ShardMemory &table = tables[slot];
  nsg_slot entry = {};
  entry.weights = table.weights();
  entry.state0 = table.state(0);
  entry.state1 = table.state(1);
  entry.state2 = table.state(2);
  entry.key_begin = std::max<int64_t>(keys.keyBegin[slot], 0);
  entry.key_end = entry.key_begin + table.shard().rows.size();
  entry.step_size = learningRates.ofSlot(slot);
  return entry;
}

nsg_slot Device::describeSorted(size_t updated, const StepPlan &plan) const {
  auto slot = static_cast<size_t>(keys.updated[updated]);
  const GpuSlot &spec = binding.program.slots[slot];
  nsg_slot entry = describeSlot(slot);
  entry.partial_variant = spec.partialVariant;
  if (plan.kind == StepKind::RowSums) {
    for (const runtime::SlotSums &sums : plan.sums)
      if (sums.slot == keys.updated[updated]) {
        entry.reduced = sums.sums;
        entry.norms = sums.counts;
      }
    return entry;
  }
  entry.reduced = stepMemory.reduced(updated);
  entry.norms = stepMemory.norms(updated);
  return entry;
}

void Device::putTraining(StepPlan &plan, Uploader &uploader) const {
  TrainingHead head = {};
  head.first = {stepMemory.keys(), stepMemory.gradientOffsets(),
                stepMemory.factors(), keys.keyBytes, 0};
  head.again = head.first;
  // By then the distinct keys are in the memory of the keys; sortedKeys is
  // scratch.
  head.again.keys = stepMemory.sortedKeys();
  std::vector<nsg_slot> slots;
  for (size_t i = 0; i < keys.updated.size(); ++i)
    slots.push_back(describeSorted(i, plan));
  std::vector<std::byte> bytes;
  auto append = [&](const void *values, size_t size) {
    const auto *first = static_cast<const std::byte *>(values);
    bytes.insert(bytes.end(), first, first + size);
  };
  append(&head, sizeof(head));
  append(slots.data(), slots.size() * sizeof(nsg_slot));
  uploader.put(plan.trainingArray, std::span<const std::byte>(bytes));
}

void Device::putSorted(StepPlan &plan, const float *gradients,
                       Uploader &uploader) const {
  nsg_sorted sorted = {};
  sorted.gradient_offsets = stepMemory.gradientOffsets();
  sorted.factors = stepMemory.factors();
  sorted.gradients = gradients;
  sorted.key_bytes = keys.keyBytes;
  sorted.one = 1.0f;
  sorted.keys = stepMemory.distinctKeys();
  sorted.starts = stepMemory.starts();
  sorted.order = stepMemory.order();
  sorted.num_runs = stepMemory.numRuns();
  sorted.num_positions = plan.step.numPositions;
  sorted.run_begin = stepMemory.runBegin();
  sorted.partials = stepMemory.partials();
  sorted.partial_stride = stepMemory.partialStride();
  uploader.put(plan.sortedArray, std::span<const nsg_sorted>(&sorted, 1));
}

} // namespace neuroshard::cuda
