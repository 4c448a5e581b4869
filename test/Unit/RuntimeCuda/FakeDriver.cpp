//===- FakeDriver.cpp - A CUDA driver for tests ---------------------------===//
//
// The functions of CudaDriver.h over malloc and FakeQueues.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "FakeQueues.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

using namespace neuroshard::cuda;

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

class FakeGpu : public fake::State {
public:
  FakeGpu() : queues(random, preferred) {}

  CUstream makeStream() override { return queues.make(); }
  void beginCapture(CUstream stream) override {
    queues.beginCapture(queues.stream(stream));
  }
  fake::Graph endCapture(CUstream stream) override {
    return queues.endCapture(queues.stream(stream));
  }
  void launchGraph(const fake::Graph &graph, CUstream stream) override {
    for (const auto &work : graph.work)
      queues.push(queues.stream(stream), work);
  }
  void reset(unsigned seed) override {
    queues.finishAll();
    count = 1;
    capability = 90;
    freeBytes = int64_t{1} << 40;
    lookups.clear();
    updates.clear();
    launches.clear();
    violations.clear();
    failingCall.clear();
    preferred = nullptr;
    deviceAllocations = hostAllocations = uploads = waits = 0;
    random.seed(seed);
  }

  /// True once, for the call that a test wants to fail.
  bool fails(const char *call) {
    if (failingCall != call)
      return false;
    failingCall.clear();
    return true;
  }

  /// Blocks of device memory by their address.
  std::map<CUdeviceptr, size_t> blocks;
  fake::Queues queues;
  /// Host memory that queued copies still use, and how many.
  std::map<const void *, int> hostUsers;

  bool holds(CUdeviceptr address, size_t bytes) const {
    auto after = blocks.upper_bound(address);
    if (after == blocks.begin())
      return false;
    --after;
    return address + bytes <= after->first + after->second;
  }
};

FakeGpu gpu;
int contextObject, moduleObject;

constexpr CUresult kOk = CUDA_SUCCESS;

/// The calling thread's capture mode; 0, the default, is global.
thread_local int captureMode = 0;

/// Whether a call fails, and invalidates the capture: while any stream is
/// captured, only threads in the relaxed mode may allocate and wait.
bool isUnsafe(const char *call) {
  if (!gpu.queues.anyCapture() || captureMode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return false;
  gpu.violations.push_back(std::string(call) +
                           " in a capture, without the relaxed mode");
  return true;
}

CUresult later(CUstream stream, std::function<void()> work) {
  gpu.queues.push(gpu.queues.stream(stream), std::move(work));
  return kOk;
}

/// Refuses copies of host memory in a capture: a replay would copy what is
/// there by then.
CUresult copyLater(CUstream stream, const void *host,
                   const std::function<void()> &copy) {
  if (gpu.queues.stream(stream)->capture)
    gpu.violations.push_back("a copy of host memory was captured");
  ++gpu.hostUsers[host];
  return later(stream, [=] {
    copy();
    if (--gpu.hostUsers[host] == 0)
      gpu.hostUsers.erase(host);
  });
}

} // namespace

extern "C" __attribute__((visibility("default"))) fake::State *fakeState() {
  return &gpu;
}

FAKE_API CUresult cuInit(unsigned) { return kOk; }
FAKE_API CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return kOk;
}
FAKE_API CUresult cuDeviceGetCount(int *count) {
  *count = gpu.count;
  return kOk;
}
FAKE_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return kOk;
}
FAKE_API CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(length));
  return kOk;
}
FAKE_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = gpu.capability / 10;
    return kOk;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = gpu.capability % 10;
    return kOk;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 2;
    return kOk;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    *value = 2048;
    return kOk;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
FAKE_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&contextObject);
  return kOk;
}
FAKE_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return kOk; }
FAKE_API CUresult cuCtxPushCurrent_v2(CUcontext) {
  ++gpu.contextDepth;
  return kOk;
}
FAKE_API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  --gpu.contextDepth;
  *context = reinterpret_cast<CUcontext>(&contextObject);
  return kOk;
}
FAKE_API CUresult cuCtxSynchronize() {
  if (gpu.queues.anyCapture())
    return fake::kCaptureUnsupported;
  ++gpu.waits;
  gpu.queues.finishAll();
  return kOk;
}
FAKE_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  if (isUnsafe("cuModuleLoadData"))
    return fake::kCaptureUnsupported;
  if (gpu.fails("cuModuleLoadData"))
    return CUDA_ERROR_INVALID_IMAGE;
  gpu.image = static_cast<const char *>(image);
  *module = reinterpret_cast<CUmodule>(&moduleObject);
  return kOk;
}
FAKE_API CUresult cuModuleUnload(CUmodule) { return kOk; }
FAKE_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule,
                                      const char *name) {
  if (gpu.fails("cuModuleGetFunction"))
    return CUDA_ERROR_NOT_FOUND;
  static std::map<std::string, std::string> names;
  names[name] = name;
  *function = reinterpret_cast<CUfunction>(&names[name]);
  return kOk;
}
FAKE_API CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned,
                                 unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream stream, void **arguments,
                                 void **) {
  if (gpu.fails("cuLaunchKernel") || blocks == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto &name = *reinterpret_cast<std::string *>(function);
  gpu.launches.push_back({name, static_cast<int64_t>(blocks)});
  return later(stream, fake::makeKernel(gpu, name, blocks, arguments));
}
FAKE_API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (isUnsafe("cuMemAlloc"))
    return fake::kCaptureUnsupported;
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<int64_t>(bytes) > gpu.freeBytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  gpu.blocks[*pointer] = bytes;
  gpu.freeBytes -= static_cast<int64_t>(bytes);
  gpu.liveBytes += static_cast<int64_t>(bytes);
  ++gpu.deviceAllocations;
  ++gpu.liveBlocks;
  return kOk;
}
FAKE_API CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (isUnsafe("cuMemFree"))
    return fake::kCaptureUnsupported;
  if (!gpu.queues.idle())
    gpu.violations.push_back("memory was freed while work was queued");
  auto block = gpu.blocks.find(pointer);
  gpu.freeBytes += static_cast<int64_t>(block->second);
  gpu.liveBytes -= static_cast<int64_t>(block->second);
  --gpu.liveBlocks;
  gpu.blocks.erase(block);
  std::free(reinterpret_cast<void *>(pointer));
  return kOk;
}
FAKE_API CUresult cuMemGetInfo_v2(size_t *freeBytes, size_t *totalBytes) {
  *freeBytes = static_cast<size_t>(gpu.freeBytes);
  *totalBytes = static_cast<size_t>(gpu.freeBytes + gpu.liveBytes);
  return kOk;
}
FAKE_API CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  if (isUnsafe("cuMemAllocHost"))
    return fake::kCaptureUnsupported;
  ++gpu.hostAllocations;
  *pointer = std::malloc(bytes);
  return kOk;
}
FAKE_API CUresult cuMemFreeHost(void *pointer) {
  if (isUnsafe("cuMemFreeHost"))
    return fake::kCaptureUnsupported;
  if (gpu.hostUsers.count(pointer))
    gpu.violations.push_back("host memory was freed before it was copied");
  std::free(pointer);
  return kOk;
}
FAKE_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from,
                                  size_t bytes) {
  if (gpu.queues.anyCapture())
    return fake::kCaptureUnsupported;
  if (!gpu.holds(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  gpu.queues.finish(gpu.queues.stream(nullptr));
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return kOk;
}
FAKE_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  if (gpu.queues.anyCapture())
    return fake::kCaptureUnsupported;
  if (!gpu.holds(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  gpu.queues.finish(gpu.queues.stream(nullptr));
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return kOk;
}
FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                       size_t bytes, CUstream stream) {
  ++gpu.uploads;
  if (!gpu.holds(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return copyLater(stream, from, [=] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  });
}
FAKE_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                       size_t bytes, CUstream stream) {
  if (!gpu.holds(to, bytes) || !gpu.holds(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return later(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                bytes);
  });
}
FAKE_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                                       CUstream stream) {
  if (!gpu.holds(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return copyLater(stream, to, [=] {
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  });
}
FAKE_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                  size_t bytes, CUstream stream) {
  if (!gpu.holds(to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return later(
      stream, [=] { std::memset(reinterpret_cast<void *>(to), value, bytes); });
}
FAKE_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                                   CUstream stream) {
  if (!gpu.holds(to, count * 4))
    return CUDA_ERROR_INVALID_VALUE;
  return later(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned *>(to), count, value);
  });
}
FAKE_API CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch,
                                     unsigned value, size_t width,
                                     size_t height, CUstream stream) {
  for (size_t row = 0; row < height; ++row)
    if (CUresult failure =
            cuMemsetD32Async(to + row * pitch, value, width, stream))
      return failure;
  return kOk;
}
FAKE_API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  // Other streams would wait for the legacy stream, which invalidates captures.
  if (flags != CU_STREAM_NON_BLOCKING)
    gpu.violations.push_back("a stream that waits for the legacy stream");
  *stream = gpu.queues.make();
  return kOk;
}
FAKE_API CUresult cuStreamDestroy_v2(CUstream stream) {
  gpu.queues.destroy(stream);
  return kOk;
}
FAKE_API CUresult cuStreamSynchronize(CUstream stream) {
  if (isUnsafe("cuStreamSynchronize"))
    return fake::kCaptureUnsupported;
  if (gpu.queues.stream(stream)->capture)
    return fake::kCaptureUnsupported;
  ++gpu.waits;
  gpu.queues.finish(gpu.queues.stream(stream));
  return kOk;
}
FAKE_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return gpu.queues.wait(gpu.queues.stream(stream),
                         reinterpret_cast<fake::Event *>(event));
}
FAKE_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  *status = gpu.queues.stream(stream)->capture != nullptr;
  return kOk;
}
FAKE_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(captureMode, *mode);
  return kOk;
}
FAKE_API CUresult cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new fake::Event);
  return kOk;
}
FAKE_API CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<fake::Event *>(event);
  return kOk;
}
FAKE_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  gpu.queues.record(reinterpret_cast<fake::Event *>(event),
                    gpu.queues.stream(stream));
  return kOk;
}
FAKE_API CUresult cuEventSynchronize(CUevent event) {
  auto *target = reinterpret_cast<fake::Event *>(event);
  if (target->capture || isUnsafe("cuEventSynchronize"))
    return fake::kCaptureUnsupported;
  ++gpu.waits;
  gpu.queues.finish(target->ticket);
  return kOk;
}
FAKE_API CUresult cuEventQuery(CUevent event) {
  auto *target = reinterpret_cast<fake::Event *>(event);
  return gpu.queues.isDone(target->ticket) ? kOk : CUDA_ERROR_NOT_READY;
}
FAKE_API CUresult cuGetErrorName(CUresult, const char **name) {
  *name = "CUDA_ERROR_FAKE";
  return kOk;
}
FAKE_API CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "the fake driver failed as asked";
  return kOk;
}

FAKE_API int nsg_sort(void *temp, size_t *tempBytes, const void *keys,
                      int32_t keyBytes, int32_t endBit, const int32_t *iota,
                      void *sortedKeys, int32_t *order, void *uniqueKeys,
                      int32_t *starts, int32_t *numRuns, int64_t n,
                      void *stream) {
  if (!temp) {
    *tempBytes = static_cast<size_t>(n) * 3 + 64;
    return 0;
  }
  if (*tempBytes < static_cast<size_t>(n) * 3 + 64 || gpu.fails("nsg_sort"))
    return CUDA_ERROR_INVALID_VALUE;
  gpu.launches.push_back({"nsg_sort", 1});
  return later(static_cast<CUstream>(stream), [=] {
    fake::sortPositions(keys, keyBytes, endBit, iota, sortedKeys, order,
                        uniqueKeys, starts, numRuns, n);
  });
}
