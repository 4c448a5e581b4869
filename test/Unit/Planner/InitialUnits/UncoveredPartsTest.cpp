//===- UncoveredPartsTest.cpp - Rectangles beside given ones --------------===//

#include "InitialUnits/UncoveredParts.h"

#include <gtest/gtest.h>

#include <random>

using namespace neuroshard;

namespace {

using Rectangles = std::vector<Rectangle>;

constexpr Rectangle kWhole{{0, 100}, {0, 12}};

TEST(UncoveredPartsTest, ACornerLeavesTwoParts) {
  Rectangles corner = {{{0, 30}, {0, 4}}};
  EXPECT_EQ(uncoveredStrips(kWhole, corner),
            (Rectangles{{{30, 100}, {0, 4}}, {{0, 100}, {4, 12}}}));
  EXPECT_EQ(uncoveredBands(kWhole, corner),
            (Rectangles{{{0, 30}, {4, 12}}, {{30, 100}, {0, 12}}}));
}

TEST(UncoveredPartsTest, EqualRangesOfNeighboursAreJoined) {
  Rectangles covered = {{{0, 30}, {0, 4}}, {{0, 30}, {4, 8}}};
  EXPECT_EQ(uncoveredStrips(kWhole, covered),
            (Rectangles{{{30, 100}, {0, 8}}, {{0, 100}, {8, 12}}}));
}

TEST(UncoveredPartsTest, AllOrNothingCovered) {
  EXPECT_EQ(uncoveredStrips(kWhole, {}), Rectangles{kWhole});
  EXPECT_EQ(uncoveredBands(kWhole, {}), Rectangles{kWhole});
  EXPECT_EQ(uncoveredBands(kWhole, {kWhole}), Rectangles{});
}

/// Every cell of a table is in one rectangle, given or found.
void expectTiling(const Rectangles &covered, const Rectangles &found) {
  for (int64_t row = 0; row < kWhole.rows.end; ++row)
    for (int64_t col = 0; col < kWhole.cols.end; ++col) {
      int times = 0;
      for (const Rectangles *each : {&covered, &found})
        for (const Rectangle &r : *each)
          times += r.rows.overlaps({row, row + 1}) &&
                   r.cols.overlaps({col, col + 1});
      ASSERT_EQ(times, 1) << row << ", " << col;
    }
}

TEST(UncoveredPartsTest, PartsTileTheTable) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    // Cells of a random grid, some of them covered.
    Rectangles covered;
    int64_t rowCut = 1 + static_cast<int64_t>(random() % 99);
    int64_t colCut = 1 + static_cast<int64_t>(random() % 11);
    for (Range rows : {Range{0, rowCut}, Range{rowCut, 100}})
      for (Range cols : {Range{0, colCut}, Range{colCut, 12}})
        if (random() % 2)
          covered.push_back({rows, cols});
    expectTiling(covered, uncoveredStrips(kWhole, covered));
    expectTiling(covered, uncoveredBands(kWhole, covered));
  }
}

} // namespace
