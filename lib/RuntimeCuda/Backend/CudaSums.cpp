//===- CudaSums.cpp - Sums of gradients by row on a GPU -------------------===//

#include "CudaSums.h"

#include "CudaUpdate.h"

namespace neuroshard::cuda {

using namespace runtime;

CudaSums::CudaSums(Device &device, Backend &backend, BufferSource &buffers,
                   UploadRing &uploads, CUstream stream,
                   std::span<const GradientPart> given)
    : device(device), uploads(uploads), stream(stream),
      staging(device.binding, backend, buffers) {
  StagedGradients staged = staging.gradientsOf(given);
  if (staged.parts.empty())
    return;
  const GpuProgram &program = device.binding.program;
  for (const Part &part : staged.parts) {
    int32_t slot = program.lookups[static_cast<size_t>(part.lookup)].slot;
    if (program.slots[static_cast<size_t>(slot)].distinctSumsVariant < 0)
      fail("the program has no kernel that adds up the gradients of slot ",
           slot, " by row");
    rows[slot];
  }
  GpuScope scope(device.gpu);
  device.sumByRow(staged.parts, staged.gradients, stream);
  for (auto &[slot, list] : rows)
    list = readDistinctRows(device, slot, stream);
}

int64_t CudaSums::numRows(int32_t slot) const {
  auto found = rows.find(slot);
  return found == rows.end() ? 0 : static_cast<int64_t>(found->second.size());
}

void CudaSums::writeRows(int32_t slot, int32_t idBytes, std::byte *to) const {
  const std::vector<int64_t> &list = rows.at(slot);
  std::vector<int32_t> narrow;
  std::span<const std::byte> bytes = std::as_bytes(std::span(list));
  if (idBytes == sizeof(int32_t)) {
    narrow.assign(list.begin(), list.end());
    bytes = std::as_bytes(std::span(narrow));
  }
  GpuScope scope(device.gpu);
  uploads.upload(reinterpret_cast<CUdeviceptr>(to), bytes, stream);
}

const float *CudaSums::sums(int32_t slot) const { return device.sumsOf(slot); }

} // namespace neuroshard::cuda
