//===- CudaSums.cpp - Sums of gradients by row on a GPU -------------------===//

#include "CudaSums.h"

#include "CudaUpdate.h"

namespace neuroshard::cuda {

using namespace runtime;

CudaSums::CudaSums(Device &device, Backend &backend, BufferSource &buffers,
                   CUstream stream, std::span<const GradientPart> given)
    : device(device), stream(stream),
      staging(device.binding, backend, buffers) {
  std::vector<Part> parts;
  std::vector<nsc_gradient> gradients;
  for (const GradientPart &part : given) {
    if (part.ids.numIds == 0)
      continue;
    gradients.push_back(staging.gradientOf(part));
    parts.push_back(staging.partOf(part));
    rows[device.binding.program.lookups[static_cast<size_t>(part.lookup)].slot];
  }
  if (parts.empty())
    return;
  GpuScope scope(device.gpu);
  device.sumByRow(parts, gradients, stream);
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
  const void *from = list.data();
  if (idBytes == sizeof(int32_t)) {
    narrow.assign(list.begin(), list.end());
    from = narrow.data();
  }
  GpuScope scope(device.gpu);
  const CudaDriver &driver = device.gpu.driver;
  driver.check(driver.memcpyHtoDAsync(
                   reinterpret_cast<CUdeviceptr>(to), from,
                   list.size() * static_cast<size_t>(idBytes), stream),
               "writing the distinct rows of a step");
  driver.check(driver.streamSynchronize(stream), "waiting for the GPU");
}

const float *CudaSums::sums(int32_t slot) const { return device.sumsOf(slot); }

} // namespace neuroshard::cuda
