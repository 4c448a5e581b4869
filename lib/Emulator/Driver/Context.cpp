//===- Context.cpp - Devices and contexts of the driver -------------------===//
//
// Every device is called "NeuroShard emulator" and has the attributes of an
// sm_90 that programs may depend on.
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "DeviceMemory.h"
#include "LastError.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace neuroshard::emulator;

namespace neuroshard::cuda {
/// The primary context of a device.
struct CUctx_st {
  int device;
  int numRetained;
  CUresult lost;
  std::string reason;
};
} // namespace neuroshard::cuda

namespace neuroshard::emulator {

namespace {
/// Number of emulated devices.
constexpr int kNumDevices = 8;

std::atomic<bool> initialized{false};
std::mutex contextMutex;
thread_local std::vector<CUcontext> contextStack;

CUctx_st *getContexts() {
  static CUctx_st *contexts = [] {
    auto *all = new CUctx_st[kNumDevices];
    for (int i = 0; i < kNumDevices; ++i)
      all[i] = {i, 0, CUDA_SUCCESS, {}};
    return all;
  }();
  return contexts;
}

bool isContext(CUcontext context) {
  return context >= getContexts() && context < getContexts() + kNumDevices;
}

/// Number and value of each CUdevice_attribute.
struct Attribute {
  int number, value;
};
constexpr Attribute kAttributes[] = {
    {1, 1024},              // threads per block
    {2, 1024},              // block, x
    {5, 2147483647},        // grid, x
    {8, 48 * 1024},         // shared memory per block
    {10, 32},               // lanes of a warp
    {12, 65536},            // registers per block
    {13, 1'000'000},        // clock, kHz
    {16, 4},                // multiprocessors
    {36, 1'000'000},        // memory clock, kHz
    {37, 512},              // memory bus, bits
    {38, 50 * 1024 * 1024}, // L2 cache
    {39, 2048},             // threads per multiprocessor
    {41, 1},                // unified addresses
    {75, 9},                // compute capability
    {76, 0},
    {106, 32}, // blocks per multiprocessor
};
} // namespace

CUresult fail(CUresult code, const std::string &text) {
  getLastError() = text;
  return code;
}

CUresult checkInitialized() {
  if (initialized)
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
}

CUresult checkDevice(CUdevice device) {
  if (CUresult result = checkInitialized())
    return result;
  if (device >= 0 && device < kNumDevices)
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_DEVICE, "no device " + std::to_string(device) +
                                             ": the emulator has " +
                                             std::to_string(kNumDevices));
}

CUresult checkContext(int *device) {
  if (CUresult result = checkInitialized())
    return result;
  if (contextStack.empty())
    return fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
  CUcontext context = contextStack.back();
  std::lock_guard lock(contextMutex);
  if (context->numRetained == 0)
    return fail(CUDA_ERROR_INVALID_CONTEXT,
                "the current context has been released");
  if (context->lost)
    return fail(context->lost, context->reason);
  if (device)
    *device = context->device;
  return CUDA_SUCCESS;
}

CurrentDevice::CurrentDevice(int device) {
  contextStack.push_back(getContexts() + device);
}

CurrentDevice::~CurrentDevice() { contextStack.pop_back(); }

bool hasOneUser(int device) {
  std::lock_guard lock(contextMutex);
  return getContexts()[device].numRetained == 1;
}

CUresult releaseContext(int device) {
  std::lock_guard lock(contextMutex);
  CUcontext context = getContexts() + device;
  if (context->numRetained == 0)
    return fail(CUDA_ERROR_INVALID_CONTEXT, "the context is not retained");
  if (--context->numRetained > 0)
    return CUDA_SUCCESS;
  context->lost = CUDA_SUCCESS;
  freeDevice(device);
  return CUDA_SUCCESS;
}

CUresult loseContext(CUresult code, const std::string &text) {
  std::lock_guard lock(contextMutex);
  CUcontext context = contextStack.back();
  if (context->lost)
    return fail(context->lost, context->reason);
  context->lost = code;
  context->reason = text;
  return fail(code, text);
}

} // namespace neuroshard::emulator

EMULATOR_EXPORT int32_t nse_emulated(void) { return 1; }

EMULATOR_EXPORT CUresult cuInit(unsigned flags) {
  if (flags != 0)
    return fail(CUDA_ERROR_INVALID_VALUE, "flags of cuInit must be 0");
  initialized = true;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuDeviceGetCount(int *count) {
  *count = kNumDevices;
  return checkInitialized();
}

EMULATOR_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return checkDevice(ordinal);
}

EMULATOR_EXPORT CUresult cuDeviceGetName(char *name, int length,
                                         CUdevice device) {
  if (CUresult result = checkDevice(device))
    return result;
  if (length <= 0)
    return fail(CUDA_ERROR_INVALID_VALUE, "no room for a device's name");
  std::snprintf(name, static_cast<size_t>(length), "NeuroShard emulator");
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  std::memcpy(uuid->bytes, "neuroshard-emul", 16);
  uuid->bytes[15] = static_cast<char>(device);
  return checkDevice(device);
}

EMULATOR_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

EMULATOR_EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute,
                                              CUdevice device) {
  if (CUresult result = checkDevice(device))
    return result;
  for (const Attribute &known : kAttributes)
    if (known.number == attribute) {
      *value = known.value;
      return CUDA_SUCCESS;
    }
  return fail(CUDA_ERROR_INVALID_VALUE,
              "the emulator does not know attribute " +
                  std::to_string(attribute) + " of a device");
}

EMULATOR_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  *bytes = kDeviceMemoryBytes;
  return checkDevice(device);
}

EMULATOR_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context,
                                                  CUdevice device) {
  if (CUresult result = checkDevice(device))
    return result;
  std::lock_guard lock(contextMutex);
  *context = getContexts() + device;
  ++(*context)->numRetained;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (CUresult result = checkInitialized())
    return result;
  if (!isContext(context))
    return fail(CUDA_ERROR_INVALID_CONTEXT, "not a context");
  std::lock_guard lock(contextMutex);
  if (context->numRetained == 0)
    return fail(CUDA_ERROR_INVALID_CONTEXT, "the context has been released");
  contextStack.push_back(context);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  if (CUresult result = checkInitialized())
    return result;
  if (contextStack.empty())
    return fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
  if (context)
    *context = contextStack.back();
  contextStack.pop_back();
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  if (CUresult result = checkInitialized())
    return result;
  if (context && !isContext(context))
    return fail(CUDA_ERROR_INVALID_CONTEXT, "not a context");
  if (!contextStack.empty())
    contextStack.pop_back();
  if (context)
    contextStack.push_back(context);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = contextStack.empty() ? nullptr : contextStack.back();
  return checkInitialized();
}

EMULATOR_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  return checkContext(device);
}
