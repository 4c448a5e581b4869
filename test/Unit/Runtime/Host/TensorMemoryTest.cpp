//===- TensorMemoryTest.cpp - Memory of the tensors of host functions -----===//
//
// Shows that what is freed is used again, wherever it is freed, and that
// tensors in use share nothing.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/DriverABI.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace {

void *allocate(uint64_t bytes) {
  return _mlir_memref_to_llvm_aligned_alloc(64, bytes);
}

TEST(TensorMemory, IsUsedAgain) {
  void *first = allocate(1000000);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  std::memset(first, 1, 1000000);
  for (uint64_t bytes : {1000000u, 999999u, 1001000u, 900000u}) {
    std::thread([&] { nsrt_tensor_free(first); }).join();
    EXPECT_EQ(allocate(bytes), first);
  }
  _mlir_memref_to_llvm_free(first); // as compiled code does
  EXPECT_EQ(allocate(1000000), first);
  nsrt_tensor_free(first);
}

TEST(TensorMemory, IsOneTensorsAlone) {
  std::vector<char *> tensors;
  for (uint64_t bytes : {0, 1, 64, 4000, 100000, 3 << 20, 100000, 1}) {
    tensors.push_back(static_cast<char *>(allocate(bytes)));
    ASSERT_NE(tensors.back(), nullptr);
    std::memset(tensors.back(), static_cast<int>(tensors.size()), bytes);
  }
  EXPECT_EQ(tensors[1][0], 2);
  EXPECT_EQ(tensors[4][99999], 5);
  EXPECT_EQ(tensors[5][(3 << 20) - 1], 6);
  EXPECT_EQ(tensors[6][0], 7);
  for (char *tensor : tensors)
    nsrt_tensor_free(tensor);
}

TEST(TensorMemory, HasArraysOfTheCodeItself) {
  auto *array = static_cast<char *>(_mlir_memref_to_llvm_aligned_alloc(16, 32));
  ASSERT_NE(array, nullptr);
  array[31] = 1;
  _mlir_memref_to_llvm_free(array);
}

TEST(TensorMemory, IsNullIfThereIsNone) {
  EXPECT_EQ(allocate(UINT64_MAX), nullptr);
  EXPECT_EQ(allocate(uint64_t{1} << 60), nullptr);
  EXPECT_EQ(_mlir_memref_to_llvm_aligned_alloc(128, 8), nullptr);
  nsrt_tensor_free(nullptr);
}

} // namespace
