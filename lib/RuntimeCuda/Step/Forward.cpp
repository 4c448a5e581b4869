//===- Forward.cpp - Lookups, and the sort for their update ---------------===//
//
// One launch runs all lookups. In training the side stream sorts meanwhile.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Driver/Status.h"
#include "neuroshard/Support/Round.h"

#include <numeric>
#include <utility>

namespace neuroshard::cuda {
namespace {

int64_t sum(const std::vector<int64_t> &values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

} // namespace

void Device::checkTraining(int32_t training) const {
  if (training < NSC_INFERENCE || training > NSC_TRAINING_JOINED)
    fail("expected training to be 0, 1 or 2, found ", training);
  if (training != NSC_INFERENCE && keys.end == 0 && binding.numSlots() > 0)
    fail("the program was compiled for inference; compile the model with its "
         "optimizers to train it");
}

/// Waits for a sort that no stream has waited for: it still reads memory that a
/// new step overwrites.
void Device::beginCall(CUstream stream, bool capturing) {
  StepPlan *sorting = std::exchange(unjoined, nullptr);
  if (!sorting || sorting->captured)
    return;
  if (capturing) // a graph cannot wait for work outside of it
    sorting->sorted.wait();
  else
    sorting->sorted.holdBack(stream);
}

void Device::forward(std::span<const Part> parts, int32_t training,
                     CUstream stream) {
  checkTraining(training);
  bool capturing = gpu.isCapturing(stream);
  beginCall(stream, capturing);
  StepPlan &plan = planFor(parts, kindOf(training), stream, capturing);
  if (training != NSC_INFERENCE)
    plan.forked.record(stream);
  kernels.launch(Kernel::Lookup, sum(plan.step.blocks[LookupBlocks]), stream,
                 plan.tasks.as<nsg_lookup_task>(),
                 plan.taskOfBlock[LookupBlocks].as<int32_t>(),
                 badIds.wordOf(plan));
  if (training == NSC_INFERENCE)
    return;
  plan.forked.holdBack(side.get());
  expandAndSort(plan, side.get());
  plan.sorted.record(side.get());
  if (training == NSC_TRAINING_JOINED)
    plan.sorted.holdBack(stream);
  unjoined = training == NSC_TRAINING_JOINED ? nullptr : &plan;
  trained = &plan;
}

void Device::expandAndSort(StepPlan &plan, CUstream stream) {
  fillKeys(plan, stream);
  if (plan.step.numPositions == 0)
    return;
  expand(plan, &plan.trainingArray.as<TrainingHead>()->first, stream);
  if (!keys.updated.empty())
    sortPositions(plan, stream);
}

/// Fills the keys if some positions may have no reader. Without any positions,
/// clears the runs: nsc_norms points to them.
void Device::fillKeys(const StepPlan &plan, CUstream stream) const {
  int64_t positions = plan.step.numPositions;
  auto fill = [&](void *array, unsigned char value, int64_t bytes,
                  const char *what) {
    auto address = reinterpret_cast<CUdeviceptr>(array);
    gpu.driver.check(gpu.driver.memsetD8Async(
                         address, value, static_cast<size_t>(bytes), stream),
                     what);
  };
  if (positions > 0 && plan.step.filled)
    fill(stepMemory.keys(), 0xff, positions * keys.keyBytes, "filling keys");
  if (positions == 0 && !keys.updated.empty())
    fill(stepMemory.runBegin(), 0,
         static_cast<int64_t>((keys.updated.size() + 1) * sizeof(int32_t)),
         "clearing the runs");
}

void Device::expand(const StepPlan &plan, const nsg_positions *positions,
                    CUstream stream) const {
  kernels.launch(Kernel::Expand, sum(plan.step.blocks[ExpandBlocks]), stream,
                 plan.tasks.as<nsg_lookup_task>(),
                 plan.taskOfBlock[ExpandBlocks].as<int32_t>(), positions);
}

void Device::sortPositions(const StepPlan &plan, CUstream stream) {
  auto bytes = static_cast<size_t>(stepMemory.sortBytes());
  int result =
      sort(stepMemory.sortTemp(), &bytes, stepMemory.keys(), keys.keyBytes,
           keys.endBit, stepMemory.iota(), stepMemory.sortedKeys(),
           stepMemory.order(), stepMemory.distinctKeys(), stepMemory.starts(),
           stepMemory.numRuns(), plan.step.numPositions, stream);
  if (result != 0)
    failWith(NSC_CUDA_ERROR, "sorting ids: ", gpu.driver.text(result));
  auto numSlots = static_cast<int32_t>(keys.updated.size());
  kernels.launch(Kernel::Ranges, ceilDivide(numSlots + 1, NSG_THREADS), stream,
                 plan.trainingArray.as<nsg_slot>(kSlotsBegin), numSlots,
                 plan.sortedArray.as<nsg_sorted>());
}

} // namespace neuroshard::cuda
