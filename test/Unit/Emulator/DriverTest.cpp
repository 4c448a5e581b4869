//===- DriverTest.cpp - Functions of the emulated driver ------------------===//
//
// Shows that the emulator has every function that the runtime calls, and that
// it refuses the calls that the real driver refuses.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "DriverSession.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace neuroshard::emulator;
using testing::Each;
using testing::HasSubstr;
using testing::StrEq;

namespace {

/// Runs in a thread of its own, which has no current context.
template <typename Body> void runAlone(Body body) { std::thread(body).join(); }

TEST(Driver, NeedsAContext) {
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  runAlone([] {
    CUdeviceptr pointer;
    CUstream stream;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_STREQ(nse_last_error(), "no context is current");
  });
}

TEST(Driver, OwnMemoryIsHiddenFromTheHost) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("NEUROSHARD_EMULATOR_OWN_MEMORY", "1", 1);
  {
    DriverSession session;
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 64), CUDA_SUCCESS);
    int value = 17;
    EXPECT_EQ(cuMemcpyHtoD_v2(pointer + 12, &value, 4), CUDA_SUCCESS);
    value = 0;
    EXPECT_EQ(cuMemcpyDtoH_v2(&value, pointer + 12, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 17);
    EXPECT_DEATH(reinterpret_cast<volatile int *>(pointer)[3] = 1, "");
    EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
  }
  unsetenv("NEUROSHARD_EMULATOR_OWN_MEMORY");
}

TEST(Driver, DescribesItsDevices) {
  int version = 0, count = 0, value = 0;
  char name[64] = {}, brief[5] = {};
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_GE(version, 12000);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 8);
  CUdevice device;
  EXPECT_EQ(cuDeviceGet(&device, 7), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGet(&device, 8), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetName(name, sizeof(name), 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "NeuroShard emulator");
  EXPECT_EQ(cuDeviceGetName(brief, sizeof(brief), 0), CUDA_SUCCESS);
  EXPECT_STREQ(brief, "Neur");
  EXPECT_EQ(cuDeviceGetAttribute(
                &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 9);
  EXPECT_EQ(cuDeviceGetAttribute(&value, 9999, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(Driver, ContextsNest) {
  DriverSession outer;
  CUcontext inner = nullptr, popped = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&inner, 3), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxPushCurrent_v2(inner), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 100), CUDA_SUCCESS);
  size_t free = 0, total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total - free, 100u);
  EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  EXPECT_EQ(popped, inner);
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total - free, 0u);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(3), CUDA_SUCCESS);
  EXPECT_FALSE(isAllocated(reinterpret_cast<void *>(pointer), 1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(3), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxPushCurrent_v2(inner), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(Driver, StreamsAndEventsBelongToADevice) {
  DriverSession session;
  CUcontext other = nullptr, popped = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  DeviceArray<uint32_t> array(4);
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 2), CUDA_ERROR_INVALID_VALUE);
  CUevent unknown = nullptr;
  EXPECT_EQ(cuEventCreate(&unknown, 8), CUDA_ERROR_INVALID_VALUE);

  ASSERT_EQ(cuCtxPushCurrent_v2(other), CUDA_SUCCESS);
  CUevent mine = nullptr;
  ASSERT_EQ(cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32Async(array.pointer, 1, 4, stream),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_STREQ(nse_last_error(),
               "a stream of device 0 where one of device 1 is expected");
  EXPECT_EQ(cuEventRecord(mine, stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(mine, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(mine), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);

  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
}

TEST(Driver, CopiesAndFills) {
  DriverSession session;
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  DeviceArray<uint32_t> array(100);
  EXPECT_EQ(cuMemsetD32Async(array.pointer, 0x01020304, 100, stream),
            CUDA_SUCCESS);
  EXPECT_THAT(std::vector<uint32_t>(array.begin(), array.end()),
              Each(0x01020304u));
  EXPECT_EQ(cuMemsetD8Async(array.pointer + 4, 7, 3, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(array[1], 0x01070707u);
  void *memory = nullptr;
  ASSERT_EQ(cuMemAllocHost_v2(&memory, 400), CUDA_SUCCESS);
  auto *host = static_cast<uint32_t *>(memory);
  std::fill_n(host, 100, 5);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(array.pointer, host, 396, stream),
            CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host, array.pointer + 4, 396, stream),
            CUDA_SUCCESS);
  EXPECT_EQ(host[97], 5u);
  EXPECT_EQ(host[98], 0x01020304u);
  EXPECT_EQ(cuMemFreeHost(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(Driver, RefusesCopiesOutsideAnAllocation) {
  DriverSession session;
  DeviceArray<uint32_t> array(100);
  std::vector<uint32_t> host(101);
  EXPECT_EQ(cuMemcpyHtoD_v2(array.pointer, host.data(), 404),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(host.data(), array.pointer + 400, 4),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      cuMemcpyDtoH_v2(host.data(), reinterpret_cast<uintptr_t>(host.data()), 4),
      CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8Async(array.pointer, 0, 401, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32Async(array.pointer + 2, 0, 1, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(array.pointer + 16), CUDA_ERROR_INVALID_VALUE);
}

TEST(Driver, RefusesHostMemoryThatIsNotPinned) {
  DriverSession session;
  DeviceArray<uint32_t> array(100);
  std::vector<uint32_t> host(100);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(array.pointer, host.data(), 400, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_STREQ(nse_last_error(),
               "an asynchronous copy of host memory that is not pinned");
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host.data(), array.pointer, 400, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(array.pointer, nullptr, 400),
            CUDA_ERROR_INVALID_VALUE);
  void *memory = nullptr;
  EXPECT_EQ(cuMemAllocHost_v2(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAllocHost_v2(&memory, 396), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(memory, array.pointer, 396, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(memory, array.pointer, 400, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(host.data()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
}

TEST(Driver, RefusesHandlesThatAreNone) {
  DriverSession session;
  auto stream = reinterpret_cast<CUstream>(0x1000);
  auto event = reinterpret_cast<CUevent>(0x1000);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleUnload(reinterpret_cast<CUmodule>(0x1000)),
            CUDA_ERROR_INVALID_HANDLE);
  CUevent real = nullptr;
  EXPECT_EQ(cuEventCreate(&real, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(real, stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(real, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, real, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(real), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(real), CUDA_ERROR_INVALID_HANDLE);
}

TEST(Driver, RefusesImagesThatAreNone) {
  DriverSession session;
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.0\n"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_THAT(nse_last_error(), HasSubstr("PTX runs on a GPU only"));
  char cubin[64] = "\177ELF\2\1\1";
  cubin[18] = static_cast<char>(190);
  EXPECT_EQ(cuModuleLoadData(&module, cubin), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_THAT(nse_last_error(), HasSubstr("a cubin runs on a GPU only"));
}

TEST(Driver, ErrorTextsEndWithWhatTheEmulatorKnows) {
  DriverSession session;
  const char *name = nullptr, *text = nullptr;
  CUdevice device;
  EXPECT_EQ(cuGetErrorName(cuDeviceGet(&device, 9), &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_INVALID_DEVICE");
  EXPECT_EQ(cuGetErrorString(CUDA_ERROR_INVALID_DEVICE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "invalid device ordinal: no device 9: the emulator has 8");
  EXPECT_EQ(cuGetErrorString(12345, &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

} // namespace
