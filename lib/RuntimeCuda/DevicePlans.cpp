//===- DevicePlans.cpp - What a step needs, before it runs ----------------===//
//
// Finds or makes the plan of a step: its tasks, its memory and its arrays on
// the GPU.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Parts.h"
#include "SortLibrary.h"
#include "Status.h"

#include <cstring>

namespace neuroshard::cuda {
namespace {

std::vector<int32_t> lookupsOf(std::span<const nsc_part> parts) {
  std::vector<int32_t> lookups;
  for (const nsc_part &part : parts)
    lookups.push_back(part.lookup);
  return lookups;
}

} // namespace

StepPlan &Device::planFor(std::span<const nsc_part> parts, bool training,
                          CUstream stream, bool capturing) {
  StepPlan *plan = capturing ? nullptr : plans.find(parts, training);
  bool current =
      plan && (!training || plan->generation == stepMemory.generation());
  if (current)
    return *plan;
  checkParts(binding, parts, training);
  if (!plan)
    plan = &plans.take(capturing);
  for (StepPlan **user : {&trained, &reduced})
    if (*user == plan)
      *user = nullptr;
  try {
    fill(*plan, parts, training, stream);
  } catch (...) {
    plans.drop(*plan);
    throw;
  }
  return *plan;
}

void Device::fill(StepPlan &plan, std::span<const nsc_part> parts,
                  bool training, CUstream stream) {
  badIds.wordOf(plan);
  // What this plan's kernels have found belongs to its former lookups.
  if (!plan.parts.empty() && lookupsOf(plan.parts) != lookupsOf(parts))
    badIds.keep(plan);
  plan.parts.clear(); // matches nothing until it is complete
  plan.training = training;
  plan.step = makeTasks(binding, keys, parts, weights, training,
                        kernels.residentBlocks(Kernel::Lookup));
  plan.places = expectedPlaces(parts);
  placeGradients(plan.step, plan.places);
  if (training)
    reserveFor(plan);
  Uploader uploader(gpu, plan, stream, uploads);
  uploader.putTasks();
  if (training) {
    putTraining(plan, uploader);
    putSorted(plan, nullptr, uploader);
  }
  uploader.finish();
  plan.generation = stepMemory.generation();
  plan.parts.assign(parts.begin(), parts.end());
}

void Device::reserveFor(const StepPlan &plan) {
  StepNeeds needs;
  needs.positions = plan.step.numPositions;
  for (size_t i = 0; i < keys.updated.size(); ++i) {
    const GpuSlot &slot = binding.program.slots[size_t(keys.updated[i])];
    needs.reducedRows.push_back(slot.twoPhase ? plan.step.rowsOfUpdated[i] : 0);
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
    needs.sortBytes = int64_t(bytes);
  }
  uint64_t before = stepMemory.generation();
  stepMemory.reserve(needs, plan.captured);
  if (before != stepMemory.generation())
    trained = reduced = nullptr; // what they have sorted is gone
}

std::vector<GradientPlace>
Device::expectedPlaces(std::span<const nsc_part> parts) const {
  return lookupsOf(parts) == lastLookups ? lastPlaces
                                         : placesOfResults(binding, parts);
}

void Device::putTraining(StepPlan &plan, Uploader &uploader) const {
  TrainingHead head = {};
  head.first = {stepMemory.keys(), stepMemory.gradientOffsets(),
                stepMemory.factors(), keys.keyBytes, 0};
  head.again = head.first;
  // The keys' memory has the distinct keys by then, and this nothing.
  head.again.keys = stepMemory.sortedKeys();
  std::vector<nsg_slot> slots;
  for (size_t i = 0; i < keys.updated.size(); ++i) {
    auto slot = size_t(keys.updated[i]);
    const GpuSlot &spec = binding.program.slots[slot];
    const TableMemory &table = tables[slot];
    nsg_slot entry = {};
    entry.weights = table.weights();
    entry.state0 = table.state(0);
    entry.state1 = table.state(1);
    entry.key_begin = keys.keyBegin[slot];
    entry.key_end = keys.keyBegin[slot] + table.shard().rows.size();
    entry.step_size = stepSizes.ofSlot(slot);
    entry.reduced = stepMemory.reduced(i);
    entry.norms = stepMemory.norms(i);
    entry.update_variant = spec.updateVariant;
    entry.reduce_variant = spec.reduceVariant;
    entry.apply_variant = spec.applyVariant;
    entry.partial_variant = spec.partialVariant;
    slots.push_back(entry);
  }
  std::vector<std::byte> bytes(sizeof(head) + slots.size() * sizeof(nsg_slot));
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!slots.empty())
    std::memcpy(bytes.data() + sizeof(head), slots.data(),
                slots.size() * sizeof(nsg_slot));
  uploader.put(plan.trainingArray, std::span<const std::byte>(bytes));
}

void Device::putSorted(StepPlan &plan, const float *gradients,
                       Uploader &uploader) const {
  nsg_sorted sorted = {};
  sorted.keys = stepMemory.distinctKeys();
  sorted.starts = stepMemory.starts();
  sorted.order = stepMemory.order();
  sorted.num_runs = stepMemory.numRuns();
  sorted.num_positions = plan.step.numPositions;
  sorted.gradient_offsets = stepMemory.gradientOffsets();
  sorted.factors = stepMemory.factors();
  sorted.gradients = gradients;
  sorted.run_begin = stepMemory.runBegin();
  sorted.key_bytes = keys.keyBytes;
  sorted.one = 1.0f;
  sorted.partials = stepMemory.partials();
  sorted.partial_stride = stepMemory.partialStride();
  uploader.put(plan.sortedArray, std::span<const nsg_sorted>(&sorted, 1));
}

} // namespace neuroshard::cuda
