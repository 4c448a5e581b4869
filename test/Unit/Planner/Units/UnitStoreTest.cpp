//===- UnitStoreTest.cpp - Tests of the cache of units --------------------===//

#include "Units/UnitStore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

using namespace neuroshard;

namespace {

using Key = std::array<int64_t, 2>;
using Map = OnceMap<Key, std::shared_ptr<const int>, HashNumbers<2>>;
constexpr int kValues = 100000;

TEST(OnceMapTest, AValueIsMadeOnce) {
  Map map;
  int made = 0;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kValues; ++i) {
      auto value = map.get({i, i % 7}, [&] {
        ++made;
        return std::make_shared<const int>(i);
      });
      ASSERT_EQ(*value, i);
    }
  EXPECT_EQ(made, kValues);
}

TEST(OnceMapTest, ValuesAreFreedInTheOrderInWhichTheyWereMade) {
  std::vector<int> freed;
  Map map;
  for (int i = 0; i < kValues; ++i)
    map.get({i, 0}, [&] {
      return std::shared_ptr<const int>(new int(i), [&](const int *value) {
        freed.push_back(*value);
        delete value;
      });
    });
  int ticks = 0;
  map.clear([&] { ++ticks; });
  EXPECT_EQ(freed.size(), size_t{kValues});
  EXPECT_GT(ticks, 10);
  // The keys are spread over a few parts, of which each keeps the order.
  auto falls = std::ranges::adjacent_find(freed, std::greater());
  int parts = 1;
  for (; falls != freed.end();
       falls = std::adjacent_find(falls + 1, freed.end(), std::greater()))
    ++parts;
  EXPECT_LT(parts, 100);
  // It can be used again.
  EXPECT_EQ(*map.get({5, 0}, [] { return std::make_shared<const int>(-1); }),
            -1);
}

} // namespace
