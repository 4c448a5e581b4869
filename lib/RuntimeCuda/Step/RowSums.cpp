//===- RowSums.cpp - Sums of gradients by row, and updates by them --------===//
//
// Sums take the sort of an update, and kernels that write a row's sum where the
// row is. The update is that of small slots, which reads one sum of each row.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

namespace neuroshard::cuda {

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
  launchRuns(Kernel::Reduce, plan, stream);
}

void Device::updateRows(std::span<const runtime::SlotSums> sums,
                        CUstream stream) {
  beginCall(stream, /*capturing=*/false);
  std::vector<nsg_slot> slots;
  std::vector<int32_t> rowsBegin = {0};
  for (const runtime::SlotSums &given : sums) {
    auto slot = static_cast<size_t>(given.slot);
    nsg_slot &entry = slots.emplace_back(describeSlot(slot));
    entry.reduced = given.sums;
    entry.norms = given.counts;
    entry.update_variant = binding.program.slots[slot].sumsUpdateVariant;
    entry.reduce_variant = entry.apply_variant = entry.partial_variant = -1;
    entry.num_sums = 1;
    rowsBegin.push_back(rowsBegin.back() + static_cast<int32_t>(given.rows));
  }
  Uploader uploader(gpu, sumsUpdate, stream, uploads, ring);
  uploader.put(sumsUpdate.tasks, std::span<const int32_t>(rowsBegin));
  uploader.put(sumsUpdate.trainingArray, std::span<const nsg_slot>(slots));
  nsg_sorted rows = {};
  rows.run_begin = sumsUpdate.tasks.writable<int32_t>(0);
  uploader.put(sumsUpdate.sortedArray, std::span<const nsg_sorted>(&rows, 1));
  uploader.finish();
  launchSmall(Kernel::SmallUpdate, rowsBegin.back(),
              sumsUpdate.trainingArray.as<nsg_slot>(), slots.size(),
              sumsUpdate.sortedArray.as<nsg_sorted>(), stream);
}

} // namespace neuroshard::cuda
