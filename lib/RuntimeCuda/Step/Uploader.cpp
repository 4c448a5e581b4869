//===- Uploader.cpp - Uploads the arrays of a step ------------------------===//
//
// Uploads only arrays that differ from those on the GPU.
//
//===----------------------------------------------------------------------===//

#include "Uploader.h"

#include <algorithm>

namespace neuroshard::cuda {

Uploader::Uploader(const Gpu &gpu, StepPlan &plan, CUstream stream,
                   const OwnStream &uploads, UploadRing &ring)
    : gpu(gpu), plan(plan), stream(plan.captured ? uploads.get() : stream),
      uploads(uploads), ring(ring) {}

void Uploader::makeRoom(UploadedArray &array, int64_t bytes) {
  if (bytes <= array.device.size())
    return;
  if (array.device.size() > 0 && !plan.captured)
    gpu.waitForAll(); // kernels may still read the old memory
  int64_t room = std::max(bytes, array.device.size() * 3 / 2);
  array = {}; // free the old memory first
  array.device = DeviceBlock(gpu, room, "the arguments of kernels");
}

void Uploader::putBytes(UploadedArray &array, const void *values,
                        int64_t bytes) {
  const auto *first = static_cast<const std::byte *>(values);
  if (array.isUploaded &&
      std::equal(array.contents.begin(), array.contents.end(), first,
                 first + bytes))
    return;
  array.isUploaded = false; // stays if the upload throws
  makeRoom(array, bytes);
  array.contents.assign(first, first + bytes);
  ring.upload(array.device.address(), array.contents, stream);
  array.isUploaded = true;
  ++copies;
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
  if (copies > 0 && plan.captured)
    uploads.wait();
}

} // namespace neuroshard::cuda
