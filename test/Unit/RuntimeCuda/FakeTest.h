//===- FakeTest.h - Tests of the C interface on the fake -------*- C++ -*-===//
//
// A fixture that resets the fake driver before and after each test, and device
// memory with values.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_FAKETEST_H
#define NEUROSHARD_TEST_RUNTIMECUDA_FAKETEST_H

#include "TestArtifact.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <span>

namespace neuroshard::test {

/// The fake driver of this process, which nsc_* use too.
fake::State &theFake();
const cuda::CudaDriver &theDriver();

/// Device memory. On the fake it can be read in place once work has ended.
template <typename T> class DeviceArray {
public:
  DeviceArray() : DeviceArray(std::vector<T>()) {}
  explicit DeviceArray(size_t count) : DeviceArray(std::vector<T>(count)) {}
  explicit DeviceArray(const std::vector<T> &values) : count(values.size()) {
    theDriver().memAlloc(&address, std::max<size_t>(1, count) * sizeof(T));
    std::copy(values.begin(), values.end(), data());
  }
  DeviceArray(DeviceArray &&other) noexcept { swap(other); }
  DeviceArray &operator=(DeviceArray &&other) noexcept {
    DeviceArray(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceArray() {
    if (address)
      theDriver().memFree(address);
  }
  T *data() const { return reinterpret_cast<T *>(address); }
  size_t size() const { return count; }
  std::span<T> values() const { return {data(), count}; }
  T &operator[](size_t i) const { return data()[i]; }

private:
  void swap(DeviceArray &other) noexcept {
    std::swap(address, other.address);
    std::swap(count, other.count);
  }
  cuda::CUdeviceptr address = 0;
  size_t count = 0;
};

/// An open device that closes itself.
class OpenDevice {
public:
  OpenDevice(const Artifact &artifact, int32_t planDevice = 0,
             const nsc_options *options = nullptr);
  ~OpenDevice() { nsc_close(handle); }
  OpenDevice(OpenDevice &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  operator nsc_device *() const { return handle; }
  std::string error() const { return nsc_last_error(handle); }

private:
  nsc_device *handle = nullptr;
};

class FakeTest : public testing::Test {
protected:
  FakeTest();
  ~FakeTest() override;

  fake::State &fake = theFake();
  cuda::CUstream stream = nullptr;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIMECUDA_FAKETEST_H
