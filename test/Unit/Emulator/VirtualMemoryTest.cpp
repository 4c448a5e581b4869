//===- VirtualMemoryTest.cpp - Memory at reserved addresses ---------------===//
//
// Shows that reserved addresses get their memory piece by piece, that it counts
// for its device, and that wrong uses are errors.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "DriverSession.h"
#include "neuroshard/Emulator/EmulatorABI.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::emulator;

namespace {

constexpr size_t kPage = 4096;

/// Four pages of addresses.
class VirtualMemory : public testing::Test {
protected:
  void SetUp() override {
    size_t granularity = 0;
    ASSERT_EQ(cuMemGetAllocationGranularity(&granularity, &kind, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(granularity, kPage);
    ASSERT_EQ(cuMemAddressReserve(&first, 4 * kPage, 0, 0, 0), CUDA_SUCCESS);
  }

  CUmemHandle create(size_t pages) {
    CUmemHandle memory = 0;
    EXPECT_EQ(cuMemCreate(&memory, pages * kPage, &kind, 0), CUDA_SUCCESS);
    return memory;
  }
  CUresult map(size_t page, size_t pages, CUmemHandle memory) {
    return cuMemMap(first + page * kPage, pages * kPage, 0, memory, 0);
  }
  size_t used() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return total - free;
  }

  DriverSession session;
  CUmemAllocationProp kind;
  CUmemAccessDesc access;
  CUdeviceptr first = 0;
};

TEST_F(VirtualMemory, GrowsPieceByPiece) {
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(cuMemsetD8Async(first, 1, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUmemHandle one = create(1), two = create(2);
  EXPECT_EQ(map(0, 1, one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemSetAccess(first, kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(first, 7, kPage, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(first, 7, kPage + 1, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(1, 2, two), CUDA_SUCCESS);
  EXPECT_EQ(used(), 3 * kPage);
  std::vector<unsigned char> values(3 * kPage);
  EXPECT_EQ(cuMemcpyDtoH_v2(values.data(), first, values.size()), CUDA_SUCCESS);
  EXPECT_EQ(values[kPage - 1], 7);
  EXPECT_EQ(values[kPage], kFreshByte);

  EXPECT_EQ(cuMemUnmap(first, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(first + kPage, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(two), CUDA_SUCCESS);
  EXPECT_EQ(used(), kPage);
  EXPECT_EQ(cuMemAddressFree(first, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(first, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(first, 4 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0u);
}

TEST_F(VirtualMemory, RefusesWrongUses) {
  CUmemHandle memory = 0;
  EXPECT_EQ(cuMemCreate(&memory, 100, &kind, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&memory, kDeviceMemoryBytes + kPage, &kind, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemRelease(12345), CUDA_ERROR_INVALID_VALUE);
  CUmemHandle five = create(5), one = create(1);
  EXPECT_EQ(map(0, 5, five), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(nse_last_error(),
              testing::HasSubstr("where no reserved addresses go on"));
  EXPECT_EQ(map(1, 1, one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(0, 2, one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(first, kPage, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemRelease(five), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(first, 4 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(first, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
}

} // namespace
