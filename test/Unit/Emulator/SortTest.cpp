//===- SortTest.cpp - The emulator's sort ---------------------------------===//
//
// Compares nsg_sort with a map of lists, for both sizes of keys and any number
// of them, and shows that it checks its arrays.
//
//===----------------------------------------------------------------------===//

#include "DriverSession.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

using namespace neuroshard::emulator;
using testing::HasSubstr;

namespace {

/// Arrays of nsg_sort in device memory.
template <typename Key> struct Arrays {
  explicit Arrays(const std::vector<Key> &values)
      : n(static_cast<int64_t>(values.size())), keys(values),
        sorted(values.size()), unique(values.size()), iota(values.size()),
        order(values.size()), starts(values.size()), numRuns(1) {
    std::iota(iota.begin(), iota.end(), 0);
  }

  int sort(int32_t endBit) {
    size_t bytes = 0;
    EXPECT_EQ(call(nullptr, bytes, endBit), 0);
    DeviceArray<char> temp(bytes);
    return call(temp.begin(), bytes, endBit);
  }
  int call(void *temp, size_t &bytes, int32_t endBit) {
    return nsg_sort(temp, &bytes, keys.begin(), sizeof(Key), endBit,
                    iota.begin(), sorted.begin(), order.begin(), unique.begin(),
                    starts.begin(), numRuns.begin(), n, nullptr);
  }

  int64_t n;
  DeviceArray<Key> keys, sorted, unique;
  DeviceArray<int32_t> iota, order, starts, numRuns;
};

template <typename Key>
void expectSorted(const std::vector<Key> &keys, int32_t endBit) {
  Arrays<Key> arrays(keys);
  ASSERT_EQ(arrays.sort(endBit), 0) << nse_last_error();
  std::map<Key, std::vector<int32_t>> runs;
  for (size_t i = 0; i < keys.size(); ++i)
    runs[keys[i]].push_back(static_cast<int32_t>(i));
  ASSERT_EQ(arrays.numRuns[0], static_cast<int32_t>(runs.size()));
  size_t run = 0, position = 0;
  for (const auto &[key, positions] : runs) {
    EXPECT_EQ(arrays.unique[run], key);
    EXPECT_EQ(arrays.starts[run++], static_cast<int32_t>(position));
    for (int32_t expected : positions)
      ASSERT_EQ(arrays.order[position++], expected);
  }
}

template <typename Key> void expectAllSizes() {
  std::mt19937_64 random(1);
  for (int endBit : {1, 7, static_cast<int>(8 * sizeof(Key))})
    for (size_t n : {0, 1, 2, 31, 1000, 20000}) {
      std::vector<Key> keys(n);
      Key mask = endBit == 8 * sizeof(Key) ? ~Key(0) : (Key(1) << endBit) - 1;
      for (Key &key : keys)
        key = Key(random()) & mask;
      expectSorted(keys, endBit);
    }
}

TEST(Sort, StableByKeyWithRuns) {
  DriverSession session;
  expectAllSizes<uint32_t>();
  expectAllSizes<uint64_t>();
}

TEST(Sort, RefusesWhatTheGpuWouldRefuse) {
  DriverSession session;
  Arrays<uint32_t> arrays({3, 1, 2});
  size_t bytes = 0;
  EXPECT_EQ(arrays.call(nullptr, bytes, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arrays.call(nullptr, bytes, 33), CUDA_ERROR_INVALID_VALUE);
  bytes = 1;
  DeviceArray<char> temp(bytes);
  EXPECT_EQ(arrays.call(temp.begin(), bytes, 32), CUDA_ERROR_INVALID_VALUE);
}

TEST(Sort, FindsArraysThatAreTooSmall) {
  DriverSession session;
  Arrays<uint32_t> arrays({3, 1, 2});
  arrays.n = 5;
  EXPECT_EQ(arrays.sort(32), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(nse_last_error(), HasSubstr("nsg_sort: 20 bytes of no"));
}

} // namespace
