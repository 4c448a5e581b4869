//===- Uploader.cpp - Uploads the arrays of a step ------------------------===//
//
// Uploads only arrays that differ from those on the GPU.
//
//===----------------------------------------------------------------------===//

#include "Uploader.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::cuda {

Uploader::Uploader(const Gpu &gpu, StepPlan &plan, CUstream stream,
                   const OwnStream &uploads)
    : gpu(gpu), plan(plan), stream(plan.captured ? uploads.get() : stream),
      uploads(uploads) {}

void Uploader::makeRoom(UploadedArray &array, int64_t bytes) {
  if (bytes <= array.device.size())
    return;
  if (array.device.size() > 0 && !plan.captured)
    gpu.waitForAll(); // kernels may still read the old memory
  int64_t room = std::max(bytes, array.device.size() * 3 / 2);
  array = {}; // free the old memory first
  array.host = PinnedBlock(gpu, room);
  array.device = DeviceBlock(gpu, room, "the arguments of kernels");
}

void Uploader::putBytes(UploadedArray &array, const void *values,
                        int64_t bytes) {
  bool same = array.bytes == bytes &&
              (bytes == 0 || std::memcmp(array.host.data(), values,
                                         static_cast<size_t>(bytes)) == 0);
  if (same)
    return;
  if (copies++ == 0 && !plan.captured)
    plan.uploaded.wait(); // the pinned copies may still be read
  array.bytes = -1;       // stays if the upload throws
  makeRoom(array, bytes);
  if (bytes > 0) {
    std::memcpy(array.host.data(), values, static_cast<size_t>(bytes));
    gpu.driver.check(
        gpu.driver.memcpyHtoDAsync(array.device.address(), array.host.data(),
                                   static_cast<size_t>(bytes), stream),
        "uploading the arguments of kernels");
  }
  array.bytes = bytes;
}

void Uploader::putTasks() {
  put(plan.tasks, std::span<const nsg_lookup_task>(plan.step.tasks));
  for (size_t kernel = 0; kernel < plan.taskOfBlock.size(); ++kernel) {
    const std::vector<int64_t> &blocks = plan.step.blocks[kernel];
    if (plan.blocksOfTasks[kernel] == blocks)
      continue;
    plan.blocksOfTasks[kernel].clear();
    put(plan.taskOfBlock[kernel],
        std::span<const int32_t>(makeTaskOfBlock(blocks)));
    plan.blocksOfTasks[kernel] = blocks;
  }
}

void Uploader::finish() {
  if (copies == 0)
    return;
  if (plan.captured)
    uploads.wait();
  else
    plan.uploaded.record(stream);
}

} // namespace neuroshard::cuda
