//===- EmulatorLibrary.h - The emulator loaded as a library ----*- C++ -*-===//
//
// Loads it privately, as the runtime does, with a current context.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_EMULATOR_EMULATORLIBRARY_H
#define NEUROSHARD_TEST_EMULATOR_EMULATORLIBRARY_H

#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace neuroshard::cuda {

/// emulator->launchKernel(...) calls cuLaunchKernel. While an object lives,
/// the context of device 0 is current.
class EmulatorLibrary {
public:
  EmulatorLibrary() {
    void *library = dlopen(EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(library) << dlerror();
#define FIND(member, symbol, parameters) find(driver.member, library, #symbol);
    NEUROSHARD_CUDA_FUNCTIONS(FIND)
    NEUROSHARD_CUDA_OPTIONAL_FUNCTIONS(FIND)
#undef FIND
    find(lastError, library, "nse_last_error");
    CUcontext context = nullptr;
    check(driver.init(0));
    check(driver.primaryCtxRetain(&context, 0));
    check(driver.ctxPushCurrent(context));
  }
  ~EmulatorLibrary() {
    check(driver.ctxPopCurrent(nullptr));
    check(driver.primaryCtxRelease(0));
  }

  const CudaDriver *operator->() const { return &driver; }
  std::string getLastError() const { return lastError(); }
  void check(CUresult result) const {
    EXPECT_EQ(result, CUDA_SUCCESS) << lastError();
  }

  template <typename T> CUdeviceptr upload(const std::vector<T> &values) const {
    CUdeviceptr pointer = 0;
    check(driver.memAlloc(&pointer, values.size() * sizeof(T)));
    check(driver.memcpyHtoD(pointer, values.data(), values.size() * sizeof(T)));
    return pointer;
  }
  template <typename T>
  void download(CUdeviceptr pointer, std::vector<T> &values) const {
    check(driver.memcpyDtoH(values.data(), pointer, values.size() * sizeof(T)));
  }

private:
  template <typename Function>
  static void find(Function *&function, void *library, const char *symbol) {
    function = reinterpret_cast<Function *>(dlsym(library, symbol));
    EXPECT_TRUE(function) << symbol;
  }

  CudaDriver driver;
  const char *(*lastError)() = nullptr;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_TEST_EMULATOR_EMULATORLIBRARY_H
