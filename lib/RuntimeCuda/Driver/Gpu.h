//===- Gpu.h - One GPU, its context and its streams -------------*- C++ -*-===//
//
// Owners of the driver's objects. The context must be current (ContextScope) to
// make them, but not to destroy them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H

#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace neuroshard::cuda {

/// A GPU and its primary context, which PyTorch uses as well.
class Gpu {
public:
  /// `freeCache` gives memory of the GPU back that the caller keeps; or null.
  Gpu(const CudaDriver &driver, int ordinal,
      std::function<void()> freeCache = nullptr);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  const CudaDriver &driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::string name;
  int capability = 0; ///< 90 for sm_90.
  int multiprocessors = 0;
  int threadsPerMultiprocessor = 0;
  int driverVersion = 0; ///< 13000 for CUDA 13.0.

  /// Waits for all work in the context. Not allowed while capturing.
  void waitForAll() const;

  /// Runs an allocation of `bytes`; once more after freeCache if there is no
  /// memory. Throws NSC_OUT_OF_MEMORY with `purpose` (or ""), the bytes asked
  /// for and those that are free.
  void allocateBy(const std::function<CUresult()> &allocation, int64_t bytes,
                  const std::string &purpose) const;
  /// By cuMemAlloc.
  CUdeviceptr allocate(int64_t bytes, const std::string &purpose) const;

  /// Whether `stream` is being captured into a graph.
  bool isCapturing(CUstream stream) const;

private:
  std::function<void()> freeCache;
};

/// A GPU that keeps its driver.
std::shared_ptr<const Gpu> openGpu(std::shared_ptr<const CudaDriver> driver,
                                   int ordinal,
                                   std::function<void()> freeCache = nullptr);

/// Makes a context current for the calling thread while in scope.
class ContextScope {
public:
  explicit ContextScope(const Gpu &gpu);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

private:
  const Gpu &gpu;
};

/// Lets the calling thread allocate and wait during a capture, while in scope.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Gpu &gpu);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const Gpu &gpu;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Both.
class GpuScope {
public:
  explicit GpuScope(const Gpu &gpu) : context(gpu), relaxed(gpu) {}

private:
  ContextScope context;
  RelaxedCapture relaxed;
};

/// A stream that does not wait for the legacy default stream.
class OwnStream {
public:
  explicit OwnStream(const Gpu &gpu);
  ~OwnStream();
  OwnStream(const OwnStream &) = delete;
  OwnStream &operator=(const OwnStream &) = delete;
  CUstream get() const { return stream; }
  void wait() const;

private:
  const Gpu &gpu;
  CUstream stream = nullptr;
};

/// A point in a stream. Waits return at once until it is recorded.
class Event {
public:
  explicit Event(const Gpu &gpu);
  ~Event();
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(CUstream stream);
  /// Makes later work of `stream` wait for the recorded point.
  void holdBack(CUstream stream) const;
  /// Blocks the calling thread until the recorded point.
  void wait() const;
  /// Whether the recorded point is reached.
  bool isDone() const;
  CUevent get() const { return event; }

private:
  const Gpu &gpu;
  CUevent event = nullptr;
  bool recorded = false;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H
