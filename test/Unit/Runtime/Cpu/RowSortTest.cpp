//===- RowSortTest.cpp - The sort of an update ----------------------------===//
//
// Shows that the sort is stable and groups the ids of a row.
//
//===----------------------------------------------------------------------===//

#include "Cpu/RowSort.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

using namespace neuroshard::runtime;

namespace {

TEST(RowSort, IsStableAndGroupsRows) {
  std::mt19937 random(1);
  for (int64_t numRows :
       {int64_t{1}, int64_t{2}, int64_t{3000}, int64_t{1} << 32}) {
    for (int64_t count : {0, 1, 1000, 40000}) {
      std::vector<RowKey> keys;
      for (int64_t i = 0; i < count; ++i)
        keys.push_back(
            makeRowKey((static_cast<uint64_t>(random()) << 16 ^ random()) %
                           static_cast<uint64_t>(numRows),
                       static_cast<uint64_t>(i)));
      std::vector<RowKey> expected = keys;
      std::stable_sort(expected.begin(), expected.end(),
                       [](RowKey a, RowKey b) { return a >> 32 < b >> 32; });
      auto pool = std::make_shared<BufferPool>();
      SortedRows sorted = sortRows(*pool, keys.data(), count, count, numRows);
      std::vector<RowKey> found;
      for (int64_t u = 0; u < sorted.numRows; ++u)
        for (int64_t k = as<int64_t>(sorted.segments)[u];
             k < as<int64_t>(sorted.segments)[u + 1]; ++k)
          found.push_back(
              makeRowKey(static_cast<uint64_t>(as<int64_t>(sorted.rows)[u]),
                         as<uint32_t>(sorted.order)[k]));
      ASSERT_EQ(found, expected);
      std::set<uint64_t> distinct;
      for (RowKey key : expected)
        distinct.insert(key >> 32);
      EXPECT_EQ(sorted.numRows, static_cast<int64_t>(distinct.size()));
    }
  }
}

} // namespace
