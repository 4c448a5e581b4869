//===- DeviceMemoryTest.cpp - Memory of the emulated GPUs -----------------===//
//
// Shows that fresh memory is full of 0xFF bytes, that writing beside an array
// is noticed, and that sizes are kept by device.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"

#include "neuroshard/Emulator/EmulatorABI.h"

#include <gtest/gtest.h>

using namespace neuroshard::emulator;

namespace {

TEST(DeviceMemory, IsFreshAndAligned) {
  for (size_t bytes : {1, 15, 16, 100, 4096, 5000, 1 << 20}) {
    auto *array = static_cast<unsigned char *>(allocateMemory(0, bytes));
    ASSERT_TRUE(array);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array) % 16, 0u);
    for (size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(array[i], 0xFF);
    EXPECT_TRUE(isAllocated(array, bytes));
    EXPECT_TRUE(isAllocated(array + bytes - 1, 1));
    EXPECT_FALSE(isAllocated(array, bytes + 1));
    EXPECT_FALSE(isAllocated(array + bytes, 1));
    EXPECT_FALSE(isAllocated(array - 1, 1));
    EXPECT_EQ(freeMemory(array), FreeResult::Freed);
    EXPECT_FALSE(isAllocated(array, bytes));
  }
}

TEST(DeviceMemory, DamageBesideAnArrayShowsWhenItIsFreed) {
  auto *array = static_cast<char *>(allocateMemory(0, 100));
  array[100] = 1; // up to the guard at 112
  EXPECT_EQ(freeMemory(array), FreeResult::Damaged);
  array = static_cast<char *>(allocateMemory(0, 100));
  array[-1] = 1;
  EXPECT_EQ(freeMemory(array), FreeResult::Damaged);
}

TEST(DeviceMemory, OnlyTheBeginningCanBeFreed) {
  auto *array = static_cast<char *>(allocateMemory(0, 100));
  EXPECT_EQ(freeMemory(array + 16), FreeResult::Unknown);
  EXPECT_EQ(freeMemory(array), FreeResult::Freed);
  EXPECT_EQ(freeMemory(array), FreeResult::Unknown);
}

TEST(DeviceMemory, DevicesHaveTheirOwn) {
  void *first = allocateMemory(1, 1000), *second = allocateMemory(2, 24);
  allocateMemory(2, 500);
  EXPECT_EQ(getAllocatedBytes(1), 1000u);
  EXPECT_EQ(getAllocatedBytes(2), 524u);
  EXPECT_FALSE(allocateMemory(2, kDeviceMemoryBytes - 523));
  freeDevice(2);
  EXPECT_EQ(getAllocatedBytes(2), 0u);
  EXPECT_FALSE(isAllocated(second, 1));
  void *begin;
  size_t bytes;
  int device;
  ASSERT_TRUE(
      findAllocation(static_cast<char *>(first) + 999, begin, bytes, device));
  EXPECT_EQ(begin, first);
  EXPECT_EQ(bytes, 1000u);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(freeMemory(first), FreeResult::Freed);
}

TEST(DeviceMemory, KnowsWhatLiesBesideAnArray) {
  auto *array = static_cast<char *>(allocateMemory(0, 100));
  EXPECT_FALSE(isBesideAllocation(array, 100));
  EXPECT_FALSE(isBesideAllocation(array + 96, 4));
  EXPECT_TRUE(isBesideAllocation(array + 96, 8));
  EXPECT_TRUE(isBesideAllocation(array + 100, 4));
  EXPECT_TRUE(isBesideAllocation(array - 1, 4));
  EXPECT_FALSE(isBesideAllocation(&array, sizeof(array)));
  freeMemory(array);
  EXPECT_FALSE(isBesideAllocation(array + 100, 4));
}

TEST(DeviceMemory, TestsGetItWithoutAContext) {
  auto *array = static_cast<char *>(nse_allocate(20));
  ASSERT_TRUE(array);
  EXPECT_EQ(array[19], static_cast<char>(0xFF));
  EXPECT_EQ(nse_free(array), 0);
  EXPECT_NE(nse_free(array), 0);
  EXPECT_EQ(nse_free(nullptr), 0);
  EXPECT_FALSE(nse_allocate(-1));
}

TEST(DeviceMemory, DescribesAddresses) {
  auto *array = static_cast<char *>(allocateMemory(0, 100));
  EXPECT_NE(describeAddress(array + 116)
                .find(", 16 bytes past the end of 100 bytes of device memory"),
            std::string::npos);
  EXPECT_NE(describeAddress(array - 4100)
                .find(", 4100 bytes before 100 bytes of device memory"),
            std::string::npos);
  EXPECT_NE(describeAddress(array + 99)
                .find(", byte 99 of 100 bytes of device memory"),
            std::string::npos);
  EXPECT_EQ(describeAddress(reinterpret_cast<void *>(16)),
            "address 0x10, which is in no device memory");
  freeMemory(array);
}

} // namespace
