//===- Gpu.cpp - One GPU, its context and its streams ---------------------===//
//
// Owners of the driver's objects. Destructors ignore errors, since the context
// may be lost.
//
//===----------------------------------------------------------------------===//

#include "Gpu.h"
#include "Status.h"

namespace neuroshard::cuda {
namespace {

int attribute(const CudaDriver &driver, CUdevice device, int which) {
  int value = 0;
  driver.check(driver.deviceGetAttribute(&value, which, device),
               "asking for an attribute of the GPU");
  return value;
}

CUdevice deviceOf(const CudaDriver &driver, int ordinal) {
  int count = 0;
  driver.check(driver.deviceGetCount(&count), "counting GPUs");
  if (ordinal < 0 || ordinal >= count)
    fail("there is no GPU ", ordinal, "; this machine has ", count,
         ", numbered from 0");
  CUdevice device = 0;
  driver.check(driver.deviceGet(&device, ordinal), "getting the GPU");
  return device;
}

} // namespace

Gpu::Gpu(const CudaDriver &driver, int ordinal, std::function<void()> freeCache)
    : driver(driver), device(deviceOf(driver, ordinal)),
      freeCache(std::move(freeCache)) {
  char text[256] = {};
  driver.check(driver.deviceGetName(text, sizeof(text) - 1, device),
               "asking for the GPU's name");
  name = text;
  capability =
      10 * attribute(driver, device,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
      attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  multiprocessors =
      attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  threadsPerMultiprocessor = attribute(
      driver, device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  driver.check(driver.driverGetVersion(&driverVersion),
               "asking for the driver's version");
  driver.check(driver.primaryCtxRetain(&context, device),
               "making a context on the GPU");
}

void Gpu::allocateBy(const std::function<CUresult()> &allocation, int64_t bytes,
                     const std::string &purpose) const {
  CUresult result = allocation();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && freeCache) {
    freeCache();
    result = allocation();
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    driver.memGetInfo(&free, &total);
    failWith(NSC_OUT_OF_MEMORY, "no GPU memory", purpose.empty() ? "" : " for ",
             purpose, ": ", bytes, " bytes asked for, ", free, " of ", total,
             " free on ", name);
  }
  driver.check(result, "allocating GPU memory");
}

CUdeviceptr Gpu::allocate(int64_t bytes, const std::string &purpose) const {
  CUdeviceptr pointer = 0;
  allocateBy(
      [&] { return driver.memAlloc(&pointer, static_cast<size_t>(bytes)); },
      bytes, purpose);
  return pointer;
}

Gpu::~Gpu() { driver.primaryCtxRelease(device); }

std::shared_ptr<const Gpu> openGpu(std::shared_ptr<const CudaDriver> driver,
                                   int ordinal,
                                   std::function<void()> freeCache) {
  auto gpu =
      std::make_unique<const Gpu>(*driver, ordinal, std::move(freeCache));
  return {gpu.release(), [driver = std::move(driver)](const Gpu *opened) {
            delete opened; // the driver goes after it
          }};
}

void Gpu::waitForAll() const {
  if (driver.ctxSynchronize) // a driver without it waits in every call
    driver.check(driver.ctxSynchronize(), "waiting for the GPU");
}

bool Gpu::isCapturing(CUstream stream) const {
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver.streamIsCapturing)
    driver.check(driver.streamIsCapturing(stream, &status),
                 "asking for the stream's state");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

ContextScope::ContextScope(const Gpu &gpu) : gpu(gpu) {
  gpu.driver.check(gpu.driver.ctxPushCurrent(gpu.context),
                   "entering the GPU's context");
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  gpu.driver.ctxPopCurrent(&popped);
}

RelaxedCapture::RelaxedCapture(const Gpu &gpu) : gpu(gpu) {
  if (gpu.driver.threadExchangeStreamCaptureMode)
    gpu.driver.check(gpu.driver.threadExchangeStreamCaptureMode(&mode),
                     "changing the capture mode");
}

RelaxedCapture::~RelaxedCapture() {
  if (gpu.driver.threadExchangeStreamCaptureMode)
    gpu.driver.threadExchangeStreamCaptureMode(&mode);
}

OwnStream::OwnStream(const Gpu &gpu) : gpu(gpu) {
  gpu.driver.check(gpu.driver.streamCreate(&stream, CU_STREAM_NON_BLOCKING),
                   "making a stream");
}

OwnStream::~OwnStream() { gpu.driver.streamDestroy(stream); }

void OwnStream::wait() const {
  gpu.driver.check(gpu.driver.streamSynchronize(stream),
                   "waiting for a stream");
}

Event::Event(const Gpu &gpu) : gpu(gpu) {
  gpu.driver.check(gpu.driver.eventCreate(&event, CU_EVENT_DISABLE_TIMING),
                   "making an event");
}

Event::~Event() { gpu.driver.eventDestroy(event); }

void Event::record(CUstream stream) {
  gpu.driver.check(gpu.driver.eventRecord(event, stream), "recording an event");
  recorded = true;
}

void Event::holdBack(CUstream stream) const {
  if (recorded)
    gpu.driver.check(gpu.driver.streamWaitEvent(stream, event, 0),
                     "waiting for an event");
}

bool Event::isDone() const {
  CUresult result = recorded ? gpu.driver.eventQuery(event) : CUDA_SUCCESS;
  if (result == CUDA_ERROR_NOT_READY)
    return false;
  gpu.driver.check(result, "asking for an event");
  return true;
}

void Event::wait() const {
  if (recorded)
    gpu.driver.check(gpu.driver.eventSynchronize(event),
                     "waiting for an event");
}

} // namespace neuroshard::cuda
