//===- StepMemory.cpp - What a training step needs on the GPU -------------===//
//
// Addresses depend on what was reserved, not on the step, so that what kernels
// are told stays the same from step to step.
//
//===----------------------------------------------------------------------===//

#include "StepMemory.h"
#include "neuroshard/Runtime/GpuABI.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <algorithm>
#include <numeric>

namespace neuroshard::cuda {

bool StepNeeds::covers(const StepNeeds &other) const {
  if (other.positions > positions || other.sortBytes > sortBytes)
    return false;
  for (size_t i = 0; i < other.reducedRows.size(); ++i)
    if (other.reducedRows[i] > reducedRows[i])
      return false;
  return true;
}

StepMemory::StepMemory(const Gpu &gpu, const Binding &binding,
                       const KeySpace &keys, const OwnStream &uploads)
    : gpu(gpu), uploads(uploads), keyBytes(keys.keyBytes),
      hasFactors(binding.program.hasFactors()) {
  for (int32_t slot : keys.updated) {
    const GpuSlot &spec = binding.program.slots[size_t(slot)];
    int64_t stride = nsrt_row_stride(spec.dim, sizeof(float));
    reducedStride.push_back(spec.twoPhase ? stride : 0);
    widest = std::max(widest, stride);
  }
  capacity.reducedRows.resize(keys.updated.size());
}

StepMemory::Layout StepMemory::makeLayout(const StepNeeds &needs) const {
  Layout result = {};
  auto take = [&](int64_t bytes) {
    int64_t offset = result.bytes;
    result.bytes += (bytes + 255) / 256 * 256;
    return offset;
  };
  int64_t n = needs.positions;
  result.keys = take(n * keyBytes);
  result.sortedKeys = take(n * keyBytes);
  result.iota = take(n * 4);
  result.order = take(n * 4);
  result.starts = take((n + 1) * 4);
  result.offsets = take(n * 8);
  result.factors = take(hasFactors ? n * 4 : 0);
  result.numRuns = take(4);
  result.runBegin = take(int64_t(reducedStride.size() + 1) * 4);
  result.sortTemp = take(needs.sortBytes);
  result.partials = take(n / NSG_CHUNK * widest * 4);
  for (size_t i = 0; i < reducedStride.size(); ++i) {
    int64_t rows = reducedStride[i] > 0 ? needs.reducedRows[i] : 0;
    result.reduced.push_back(take(rows * reducedStride[i] * 4));
    result.norms.push_back(take(rows * 4));
  }
  return result;
}

void StepMemory::reserve(const StepNeeds &needs, bool capturing) {
  if (!empty() && capacity.covers(needs)) {
    captured |= capturing;
    return;
  }
  // Steps differ in size: growing again a little later would cost more.
  auto grow = [](int64_t had, int64_t asked) {
    return asked <= had ? had : std::max(asked, had + had / 16);
  };
  StepNeeds room = capacity;
  room.positions = grow(room.positions, needs.positions);
  room.sortBytes = grow(room.sortBytes, needs.sortBytes);
  for (size_t i = 0; i < needs.reducedRows.size(); ++i)
    room.reducedRows[i] = grow(room.reducedRows[i], needs.reducedRows[i]);

  if (captured || capturing) {
    retired.push_back(std::move(block));
  } else if (!empty()) {
    gpu.waitForAll();
    block = {};
  }
  current = 0; // until the new memory is there
  layout = makeLayout(room);
  block = DeviceBlock(gpu, layout.bytes, "the update's sort and its rows");
  capacity = room;
  captured = capturing;
  fillIota();
  current = ++generations;
}

void StepMemory::fillIota() {
  constexpr int64_t most = 1 << 20;
  int64_t chunk = std::min(most, capacity.positions);
  PinnedBlock values(gpu, chunk * 4);
  auto *value = reinterpret_cast<int32_t *>(values.data());
  for (int64_t begin = 0; begin < capacity.positions; begin += chunk) {
    int64_t count = std::min(chunk, capacity.positions - begin);
    std::iota(value, value + count, int32_t(begin));
    CUdeviceptr to = block.address() + CUdeviceptr(layout.iota + begin * 4);
    gpu.driver.check(
        gpu.driver.memcpyHtoDAsync(to, value, size_t(count) * 4, uploads.get()),
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
  return hasFactors ? at<float>(layout.factors) : nullptr;
}

float *StepMemory::reduced(size_t updated) const {
  return reducedStride[updated] > 0 ? at<float>(layout.reduced[updated])
                                    : nullptr;
}

float *StepMemory::norms(size_t updated) const {
  return reducedStride[updated] > 0 ? at<float>(layout.norms[updated])
                                    : nullptr;
}

} // namespace neuroshard::cuda
