//===- Gpu.h - One GPU, its context and its memory -------------*- C++ -*-===//
//
// Owners of the driver's objects. The context must be current (ContextScope) to
// make them, but not to destroy them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H

#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <string>
#include <utility>

namespace neuroshard::cuda {

/// A GPU and its primary context, which PyTorch uses as well.
class Gpu {
public:
  Gpu(const CudaDriver &driver, int ordinal);
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

  /// Whether `stream` is being captured into a graph.
  bool isCapturing(CUstream stream) const;
};

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

/// Device memory, aligned to at least 256 bytes.
class DeviceBlock {
public:
  DeviceBlock() = default;
  /// Zero bytes: no memory, a null pointer. Throws NSC_OUT_OF_MEMORY with
  /// `purpose`, the bytes asked for and those that are free.
  DeviceBlock(const Gpu &gpu, int64_t bytes, const std::string &purpose);
  DeviceBlock(DeviceBlock &&other) noexcept { swap(other); }
  DeviceBlock &operator=(DeviceBlock &&other) noexcept {
    DeviceBlock(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBlock();

  CUdeviceptr address() const { return pointer; }
  int64_t size() const { return bytes; }
  template <typename T> T *as(int64_t offset = 0) const {
    return pointer ? reinterpret_cast<T *>(pointer +
                                           static_cast<CUdeviceptr>(offset))
                   : nullptr;
  }

private:
  void swap(DeviceBlock &other) noexcept;

  const Gpu *gpu = nullptr;
  CUdeviceptr pointer = 0;
  int64_t bytes = 0;
};

/// Page-locked host memory, for asynchronous copies.
class PinnedBlock {
public:
  PinnedBlock() = default;
  PinnedBlock(const Gpu &gpu, int64_t bytes);
  PinnedBlock(PinnedBlock &&other) noexcept { swap(other); }
  PinnedBlock &operator=(PinnedBlock &&other) noexcept {
    PinnedBlock(std::move(other)).swap(*this);
    return *this;
  }
  ~PinnedBlock();

  std::byte *data() const { return static_cast<std::byte *>(pointer); }
  int64_t size() const { return bytes; }

private:
  void swap(PinnedBlock &other) noexcept;

  const Gpu *gpu = nullptr;
  void *pointer = nullptr;
  int64_t bytes = 0;
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

private:
  const Gpu &gpu;
  CUevent event = nullptr;
  bool recorded = false;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H
