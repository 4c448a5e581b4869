//===- StepMemory.cpp - Buffers of a training step on a GPU ---------------===//
//
// Addresses depend on the reserved sizes and not on the step, so that the
// arguments of kernels stay the same from step to step.
//
//===----------------------------------------------------------------------===//

#include "StepMemory.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <algorithm>
#include <numeric>

namespace neuroshard::cuda {

namespace {

constexpr int64_t kArrayAlignment = 256;

/// Grows by at least 1/16: steps differ a little in size, and growing again
/// soon would cost more than the room.
void grow(int64_t &had, int64_t asked) {
  if (asked > had)
    had = std::max(asked, had + had / 16);
}

void grow(std::vector<int64_t> &had, const std::vector<int64_t> &asked) {
  for (size_t i = 0; i < asked.size(); ++i)
    grow(had[i], asked[i]);
}

} // namespace

StepMemory::StepMemory(const Gpu &gpu, const Binding &binding,
                       const KeySpace &keys, const OwnStream &uploads)
    : gpu(gpu), uploads(uploads) {
  rows.keyBytes = keys.keyBytes;
  rows.hasFactors = binding.program.hasFactors();
  for (int32_t slot : keys.updated) {
    const GpuSlot &spec = binding.program.slots[static_cast<size_t>(slot)];
    int64_t stride = nsrt_row_stride(spec.dim, sizeof(float));
    rows.reducedStride.push_back(spec.keepsSums() ? stride : 0);
    // Sums of distinct rows alone have one norm each.
    rows.normsPerRow.push_back(
        spec.twoPhase ? binding.tableOf(static_cast<size_t>(slot)).normsPerRow()
                      : 1);
    rows.widest = std::max(rows.widest, stride);
  }
  capacity.reducedRows.resize(keys.updated.size());
}

void StepMemory::reserve(const UpdateNeeds &needs, bool capturing) {
  if (!empty() && capacity.covers(needs)) {
    captured |= capturing;
    return;
  }
  UpdateNeeds room = capacity;
  grow(room.positions, needs.positions);
  grow(room.sortBytes, needs.sortBytes);
  grow(room.reducedRows, needs.reducedRows);

  if (captured || capturing) {
    retired.push_back(std::move(block));
  } else if (!empty()) {
    gpu.waitForAll();
    block = {};
  }
  current = 0; // stays 0 if the allocation throws
  layout = layOutUpdate(rows, room, kArrayAlignment);
  block = DeviceBlock(gpu, layout.bytes, "the update's sort and its rows");
  capacity = room;
  captured = capturing;
  fillIota();
  current = ++generations;
}

void StepMemory::fillIota() {
  constexpr int64_t kMostValues = 1 << 20;
  int64_t chunk = std::min(kMostValues, capacity.positions);
  PinnedBlock values(gpu, chunk * 4);
  auto *value = reinterpret_cast<int32_t *>(values.data());
  for (int64_t begin = 0; begin < capacity.positions; begin += chunk) {
    int64_t count = std::min(chunk, capacity.positions - begin);
    std::iota(value, value + count, static_cast<int32_t>(begin));
    CUdeviceptr to =
        block.address() + static_cast<CUdeviceptr>(layout.iota + begin * 4);
    gpu.driver.check(gpu.driver.memcpyHtoDAsync(to, value,
                                                static_cast<size_t>(count) * 4,
                                                uploads.get()),
                     "filling the sort's values");
    uploads.wait();
  }
}

int64_t StepMemory::bytes() const {
  int64_t total = block.size();
  for (const DeviceBlock &old : retired)
    total += old.size();
  return total;
}

float *StepMemory::factors() const {
  return rows.hasFactors ? at<float>(layout.factors) : nullptr;
}

float *StepMemory::reduced(size_t updated) const {
  return rows.reducedStride[updated] > 0 ? at<float>(layout.reduced[updated])
                                         : nullptr;
}

float *StepMemory::norms(size_t updated) const {
  return rows.reducedStride[updated] > 0 ? at<float>(layout.norms[updated])
                                         : nullptr;
}

} // namespace neuroshard::cuda
