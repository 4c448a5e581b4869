//===- RandomSetsTest.cpp - Random sets keep their limits, cover the kinds ===//

#include "neuroshard/Collect/RandomSets.h"

#include <gtest/gtest.h>

#include <set>

using namespace neuroshard;

namespace {

const TablePool &pool() {
  static const TablePool made = makeTablePool(856);
  return made;
}

TEST(RandomSets, KeepTheirLimits) {
  RandomSetOptions options;
  for (int64_t index = 0; index < 300; ++index) {
    options.heldOut = index % 3 == 0;
    MeasuredSet set = makeRandomSet(pool(), options, 11, index);
    ASSERT_FALSE(set.shards.empty());
    std::set<int> used;
    for (const Table &table : set.problem.tables) {
      EXPECT_EQ(table.dim % 4, 0);
      EXPECT_LE(table.dim, 512);
      EXPECT_EQ(TablePool::isHeldOut(static_cast<size_t>(poolIndex(table))),
                options.heldOut);
      EXPECT_TRUE(used.insert(poolIndex(table)).second) << "drawn twice";
    }
    double bytes = 0;
    for (const Shard &shard : set.shards) {
      const Table &table =
          set.problem
              .tables[static_cast<size_t>(set.problem.tableIndex(shard.table))];
      EXPECT_LE(shard.rowEnd, table.rows);
      EXPECT_LE(shard.colEnd, table.dim);
      EXPECT_EQ(shard.width() % 4, 0);
      bytes += static_cast<double>(shard.rows() * shard.width() *
                                   elementBytes(table.elementType));
    }
    EXPECT_LE(bytes, static_cast<double>(options.memoryBytes));
    EXPECT_EQ(describeSet(set).size(), set.shards.size());
  }
}

TEST(RandomSets, SameNumberSameSet) {
  RandomSetOptions options;
  MeasuredSet a = makeRandomSet(pool(), options, 5, 17);
  MeasuredSet b = makeRandomSet(pool(), options, 5, 17);
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(a.shards, b.shards);
  MeasuredSet c = makeRandomSet(pool(), options, 5, 18);
  EXPECT_NE(a.problem, c.problem);
}

TEST(RandomSets, CoverEveryKind) {
  std::set<OptimizerKind> optimizers;
  std::set<ElementType> elements;
  std::set<int64_t> idTypes, batches;
  int weighted = 0, unpooled = 0, rowSplit = 0, columnSplit = 0, exact = 0,
      several = 0, many = 0;
  for (int64_t index = 0; index < 400; ++index) {
    MeasuredSet set = makeRandomSet(pool(), {}, 3, index);
    batches.insert(set.problem.batch.globalSize);
    many += set.shards.size() > 15;
    for (const Feature &feature : set.problem.features)
      unpooled += feature.pooling == Pooling::None;
    for (const ShardWork &work : describeSet(set)) {
      optimizers.insert(work.optimizer);
      elements.insert(work.elementType);
      idTypes.insert(work.idBytes);
      weighted += work.weighted;
      rowSplit += work.rowSplit;
      columnSplit += work.columnSplit;
      exact += work.exactNorms;
      several += work.features > 1;
    }
  }
  EXPECT_EQ(optimizers.size(), 4u);
  EXPECT_EQ(elements.size(), 3u);
  EXPECT_EQ(idTypes.size(), 2u);
  EXPECT_EQ(batches.size(), 6u);
  for (int count :
       {weighted, unpooled, rowSplit, columnSplit, exact, several, many})
    EXPECT_GE(count, 10);
}

} // namespace
