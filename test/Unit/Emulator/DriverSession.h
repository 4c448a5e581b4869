//===- DriverSession.h - A context of the emulated driver ------*- C++ -*-===//
//
// A current context, and arrays in its memory. Declares the driver's functions
// from the list in CudaDriver.h.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_EMULATOR_DRIVERSESSION_H
#define NEUROSHARD_TEST_EMULATOR_DRIVERSESSION_H

#include "Driver/Driver.h"

#include "neuroshard/Emulator/EmulatorABI.h"

#include <gtest/gtest.h>
#include <vector>

namespace neuroshard::emulator {

extern "C" {
#define DECLARE(member, symbol, parameters) CUresult symbol parameters;
NEUROSHARD_CUDA_FUNCTIONS(DECLARE)
NEUROSHARD_CUDA_OPTIONAL_FUNCTIONS(DECLARE)
#undef DECLARE
int nsg_sort(void *temp, size_t *temp_bytes, const void *keys,
             int32_t key_bytes, int32_t end_bit, const int32_t *iota,
             void *sorted_keys, int32_t *order, void *unique_keys,
             int32_t *starts, int32_t *num_runs, int64_t n, void *stream);
}

/// Keeps the context of device 0 current while it lives.
class DriverSession {
public:
  DriverSession() {
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
  }
  ~DriverSession() {
    EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  }

  CUcontext context = nullptr;
};

/// An array in the current context's memory, which the host can read as well.
template <typename T> class DeviceArray {
public:
  explicit DeviceArray(size_t size) : bytes(size * sizeof(T)) {
    EXPECT_EQ(bytes ? cuMemAlloc_v2(&pointer, bytes) : CUDA_SUCCESS,
              CUDA_SUCCESS);
  }
  explicit DeviceArray(const std::vector<T> &values)
      : DeviceArray(values.size()) {
    EXPECT_EQ(cuMemcpyHtoD_v2(pointer, values.data(), bytes), CUDA_SUCCESS);
  }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  ~DeviceArray() { EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS); }

  T *begin() { return reinterpret_cast<T *>(static_cast<uintptr_t>(pointer)); }
  T *end() { return begin() + bytes / sizeof(T); }
  T &operator[](size_t i) { return begin()[i]; }

  CUdeviceptr pointer = 0;
  size_t bytes;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_TEST_EMULATOR_DRIVERSESSION_H
