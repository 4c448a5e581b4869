//===- Gpu.h - One GPU, its context and its memory -------------*- C++ -*-===//
//
// Owners of what the driver hands out. All need the context to be current
// (ContextScope) where they are made; they free themselves anywhere.
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

  /// Waits for everything that runs in the context. Not while capturing.
  void waitForAll() const;

  /// True while `stream` is recorded into a graph.
  bool isCapturing(CUstream stream) const;
};

/// Makes a context current for the calling thread, as long as it lives.
class ContextScope {
public:
  explicit ContextScope(const Gpu &gpu);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

private:
  const Gpu &gpu;
};

/// Lets the calling thread allocate and wait while some stream is captured.
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

/// Host memory that the GPU copies from and to on its own.
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

/// A point in a stream. Does nothing until it was recorded once.
class Event {
public:
  explicit Event(const Gpu &gpu);
  ~Event();
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(CUstream stream);
  /// Work put on `stream` from now on waits for the recorded point.
  void holdBack(CUstream stream) const;
  /// Waits for it in the calling thread.
  void wait() const;

private:
  const Gpu &gpu;
  CUevent event = nullptr;
  bool recorded = false;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPU_H
