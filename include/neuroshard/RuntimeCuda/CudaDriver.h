//===- CudaDriver.h - The functions of the CUDA driver ---------*- C++ -*-===//
//
// Types, constants and functions of the driver API (libcuda.so.1, ABI of CUDA
// 12 and 13), declared here so that nothing of CUDA is needed to build. The
// functions are found when the library is first used. A stand-in for the
// driver (lib/Emulator) includes this header and exports the same symbols
// with the same signatures.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIMECUDA_CUDADRIVER_H
#define NEUROSHARD_RUNTIMECUDA_CUDADRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace neuroshard::cuda {

using CUresult = int; ///< an enum of the API; 0 is success.
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *; ///< null: the legacy default stream.
using CUevent = struct CUevent_st *;

struct CUuuid {
  char bytes[16];
};

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NOT_INITIALIZED = 3;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
inline constexpr CUresult CUDA_ERROR_INVALID_IMAGE = 200;
inline constexpr CUresult CUDA_ERROR_INVALID_CONTEXT = 201;
inline constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;
inline constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
inline constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;
inline constexpr CUresult CUDA_ERROR_NOT_READY = 600;
inline constexpr CUresult CUDA_ERROR_ILLEGAL_ADDRESS = 700;
inline constexpr CUresult CUDA_ERROR_LAUNCH_FAILED = 719;
inline constexpr CUresult CUDA_ERROR_NOT_SUPPORTED = 801;

/// CUdevice_attribute.
inline constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;

/// CUstream_flags, CUevent_flags.
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;

/// CUstreamCaptureStatus, CUstreamCaptureMode.
inline constexpr int CU_STREAM_CAPTURE_STATUS_NONE = 0;
inline constexpr int CU_STREAM_CAPTURE_STATUS_ACTIVE = 1;
inline constexpr int CU_STREAM_CAPTURE_MODE_RELAXED = 2;

/// Memory that is mapped at reserved addresses: CUmemLocation,
/// CUmemAllocationProp and CUmemAccessDesc, for pinned memory of a device.
struct CUmemLocation {
  int type = 1; ///< CU_MEM_LOCATION_TYPE_DEVICE.
  int id = 0;
};
struct CUmemAllocationProp {
  int type = 1; ///< CU_MEM_ALLOCATION_TYPE_PINNED.
  int requestedHandleTypes = 0;
  CUmemLocation location;
  void *win32HandleMetaData = nullptr;
  unsigned char allocFlags[8] = {};
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags = 3; ///< CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
};
using CUmemHandle = unsigned long long; ///< CUmemGenericAllocationHandle.

/// A library that exports this symbol (int32_t nse_emulated(void)) stands in
/// for the driver: its cuModuleLoadData takes the contents of a program's
/// .emulated.so instead of a cubin or PTX.
inline constexpr const char *kEmulatorSymbol = "nse_emulated";

// Calls X(member, symbol, parameters) for each function; all return CUresult.
// cuModuleLoadData: `image` is a whole cubin, or PTX that ends with a zero
// byte. cuMemcpy*Async: host memory is pinned. cuLaunchKernel: params[i]
// points to argument i; grids and blocks are one-dimensional.
#define NEUROSHARD_CUDA_FUNCTIONS(X)                                           \
  X(init, cuInit, (unsigned flags))                                            \
  X(driverGetVersion, cuDriverGetVersion, (int *version))                      \
  X(deviceGetCount, cuDeviceGetCount, (int *count))                            \
  X(deviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                  \
  X(deviceGetName, cuDeviceGetName, (char *name, int length, CUdevice))        \
  X(deviceGetAttribute, cuDeviceGetAttribute,                                  \
    (int *value, int attribute, CUdevice))                                     \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * ctx, CUdevice))   \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice))               \
  X(ctxPushCurrent, cuCtxPushCurrent_v2, (CUcontext))                          \
  X(ctxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * ctx))                      \
  X(moduleLoadData, cuModuleLoadData, (CUmodule * module, const void *image))  \
  X(moduleUnload, cuModuleUnload, (CUmodule))                                  \
  X(moduleGetFunction, cuModuleGetFunction,                                    \
    (CUfunction * function, CUmodule, const char *name))                       \
  X(launchKernel, cuLaunchKernel,                                              \
    (CUfunction, unsigned gridX, unsigned gridY, unsigned gridZ,               \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     CUstream, void **params, void **extra))                                   \
  X(memAlloc, cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes))            \
  X(memFree, cuMemFree_v2, (CUdeviceptr))                                      \
  X(memGetInfo, cuMemGetInfo_v2, (size_t *freeBytes, size_t *totalBytes))      \
  X(memAllocHost, cuMemAllocHost_v2, (void **pointer, size_t bytes))           \
  X(memFreeHost, cuMemFreeHost, (void *pointer))                               \
  X(memcpyHtoD, cuMemcpyHtoD_v2,                                               \
    (CUdeviceptr to, const void *from, size_t bytes))                          \
  X(memcpyDtoH, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))   \
  X(memcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                     \
    (CUdeviceptr to, const void *from, size_t bytes, CUstream))                \
  X(memcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                     \
    (void *to, CUdeviceptr from, size_t bytes, CUstream))                      \
  X(memcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                     \
    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream))                \
  X(memsetD8Async, cuMemsetD8Async,                                            \
    (CUdeviceptr to, unsigned char value, size_t count, CUstream))             \
  X(memsetD32Async, cuMemsetD32Async,                                          \
    (CUdeviceptr to, unsigned value, size_t count, CUstream))                  \
  X(memsetD2D32Async, cuMemsetD2D32Async,                                      \
    (CUdeviceptr to, size_t pitch, unsigned value, size_t width,               \
     size_t height, CUstream))                                                 \
  X(streamCreate, cuStreamCreate, (CUstream * stream, unsigned flags))         \
  X(streamDestroy, cuStreamDestroy_v2, (CUstream))                             \
  X(streamSynchronize, cuStreamSynchronize, (CUstream))                        \
  X(streamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned flags))   \
  X(eventCreate, cuEventCreate, (CUevent * event, unsigned flags))             \
  X(eventDestroy, cuEventDestroy_v2, (CUevent))                                \
  X(eventRecord, cuEventRecord, (CUevent, CUstream))                           \
  X(eventQuery, cuEventQuery, (CUevent))                                       \
  X(eventSynchronize, cuEventSynchronize, (CUevent))                           \
  X(getErrorName, cuGetErrorName, (CUresult, const char **name))               \
  X(getErrorString, cuGetErrorString, (CUresult, const char **text))

// These may be missing from a stand-in; their pointers are then null.
#define NEUROSHARD_CUDA_OPTIONAL_FUNCTIONS(X)                                  \
  X(memcpyPeerAsync, cuMemcpyPeerAsync,                                        \
    (CUdeviceptr to, CUcontext toContext, CUdeviceptr from,                    \
     CUcontext fromContext, size_t bytes, CUstream))                           \
  X(memGetAllocationGranularity, cuMemGetAllocationGranularity,                \
    (size_t *bytes, const CUmemAllocationProp *, int flags))                   \
  X(memAddressReserve, cuMemAddressReserve,                                    \
    (CUdeviceptr * pointer, size_t bytes, size_t alignment,                    \
     CUdeviceptr wanted, unsigned long long flags))                            \
  X(memAddressFree, cuMemAddressFree, (CUdeviceptr, size_t bytes))             \
  X(memCreate, cuMemCreate,                                                    \
    (CUmemHandle * memory, size_t bytes, const CUmemAllocationProp *,          \
     unsigned long long flags))                                                \
  X(memRelease, cuMemRelease, (CUmemHandle))                                   \
  X(memMap, cuMemMap,                                                          \
    (CUdeviceptr, size_t bytes, size_t offset, CUmemHandle,                    \
     unsigned long long flags))                                                \
  X(memUnmap, cuMemUnmap, (CUdeviceptr, size_t bytes))                         \
  X(memSetAccess, cuMemSetAccess,                                              \
    (CUdeviceptr, size_t bytes, const CUmemAccessDesc *, size_t count))        \
  X(ctxSynchronize, cuCtxSynchronize, ())                                      \
  X(streamIsCapturing, cuStreamIsCapturing, (CUstream, int *status))           \
  X(threadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,        \
    (int *mode))                                                               \
  X(occupancyMaxActiveBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,     \
    (int *blocks, CUfunction, int blockThreads, size_t dynamicBytes))

/// Sorts positions stably by key and finds the runs; exported by a stand-in or
/// by libneuroshard_cuda_sort.so. See Sort.cu.
using SortFunction = int (*)(void *temp, size_t *tempBytes, const void *keys,
                             int32_t keyBytes, int32_t endBit,
                             const int32_t *iota, void *sortedKeys,
                             int32_t *order, void *uniqueKeys, int32_t *starts,
                             int32_t *numRuns, int64_t n, void *stream);

/// One loaded driver library and its functions.
struct CudaDriver {
#define NEUROSHARD_CUDA_MEMBER(member, symbol, parameters)                     \
  CUresult(*member) parameters = nullptr;
  NEUROSHARD_CUDA_FUNCTIONS(NEUROSHARD_CUDA_MEMBER)
  NEUROSHARD_CUDA_OPTIONAL_FUNCTIONS(NEUROSHARD_CUDA_MEMBER)
#undef NEUROSHARD_CUDA_MEMBER

  void *library = nullptr;
  bool emulated = false;
  /// The file of the library, for messages.
  std::string name;

  /// The driver of this process: the library that the environment variable
  /// NEUROSHARD_CUDA_DRIVER names, else libcuda.so.1, loaded by the first call.
  /// Throws NSC_NO_DRIVER with the reason if there is none, or no GPU.
  static const CudaDriver &get();

  /// Loads and starts a library.
  static CudaDriver load(const std::string &file);

  /// Throws "what: NAME (text)" unless `result` is success, as
  /// NSC_OUT_OF_MEMORY or NSC_CUDA_ERROR.
  void check(CUresult result, const char *what) const;

  /// The name and the text of an error.
  std::string text(CUresult result) const;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_RUNTIMECUDA_CUDADRIVER_H
