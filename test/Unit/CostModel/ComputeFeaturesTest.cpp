//===- ComputeFeaturesTest.cpp - Each feature's value for a known shard ---===//

#include "neuroshard/CostModel/ComputeFeatures.h"

#include "SmallModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

std::map<std::string, float> featuresOf(const ShardWork &shard) {
  std::vector<float> values(kFeatureCount);
  featurize(shard, values);
  std::map<std::string, float> byName;
  for (size_t i = 0; i < values.size(); ++i)
    byName[std::string(featureNames()[i])] = values[i];
  return byName;
}

TEST(ComputeFeaturesTest, NamesAreUnique) {
  std::set<std::string_view> names(featureNames().begin(),
                                   featureNames().end());
  EXPECT_EQ(names.size(), static_cast<size_t>(kFeatureCount));
}

TEST(ComputeFeaturesTest, ValuesOfAShard) {
  AccessStatistics access;
  access.reuse[0] = 0.25;
  access.reuse[16] = 0.75;
  ShardWork work;
  work.access = &access;
  work.rows = 1000;
  work.tableRows = 4000;
  work.width = 20;
  work.tableDim = 80;
  work.elementType = ElementType::BF16;
  work.outputType = ElementType::F32;
  work.optimizer = OptimizerKind::RowWiseAdagrad;
  work.pooling = 10;
  work.features = 2;
  work.lookups = 40960;
  work.uniqueRows = 4096;
  work.outputRows = 8192;
  work.updateLookups = 81920;
  work.updateUniqueRows = 5000;
  work.updateGradientRows = 16384;
  work.idBytes = 4;
  work.weighted = true;
  work.rowSplit = true;
  work.exactNorms = true;
  work.replicated = true;
  auto features = featuresOf(work);
  auto expect = [&](const char *name, double value) {
    ASSERT_TRUE(features.contains(name)) << name;
    EXPECT_FLOAT_EQ(features[name], static_cast<float>(value)) << name;
    features.erase(name);
  };
  expect("reuse_1", 0.25);
  expect("reuse_more", 0.75);
  for (int bin = 2; bin <= 32768; bin *= 2)
    expect(("reuse_" + std::to_string(bin)).c_str(), 0);
  expect("reuse_known", 1);
  // A quarter of the ids is seen once, the others 2^16 times.
  for (int bin = 1; bin <= 512; bin *= 2)
    expect(("lookups_reused_" + std::to_string(bin)).c_str(),
           0.25 / (0.25 + 0.75 * 65536));
  expect("width_in_128", 20 / 128.0);
  expect("log_width", std::log(21));
  expect("width_share", 0.25);
  expect("width_tail", 0.25);
  expect("log_pooling", std::log(11));
  expect("log_rows", std::log(1001));
  expect("row_share", 0.25);
  expect("row_split", 1);
  expect("log_batch", std::log(4097));
  expect("log_features", std::log(3));
  expect("log_lookups", std::log(40961));
  expect("log_unique_rows", std::log(4097));
  expect("unique_share", 0.1);
  expect("log_output_rows", std::log(8193));
  expect("log_bag_length", std::log(1 + 40960 / 8192.0));
  expect("log_update_lookups", std::log(81921));
  expect("log_update_unique_rows", std::log(5001));
  expect("log_update_gradient_rows", std::log(16385));
  expect("element_in_4_bytes", 0.5);
  expect("bf16", 1);
  expect("output_in_4_bytes", 1);
  expect("id_in_8_bytes", 0.5);
  expect("weighted", 1);
  expect("sgd", 0);
  expect("adagrad", 0);
  expect("rowwise_adagrad", 1);
  expect("adam", 0);
  expect("exact_norms", 1);
  expect("replicated", 1);
  expect("log_table_bytes", std::log(1000 * 40 + 1.0));
  expect("log_read_bytes", std::log(40960 * 40 + 1.0));
  expect("log_unique_bytes", std::log(4096 * 40 + 1.0));
  // Rowwise state: 4 bytes a row.
  expect("log_state_bytes", std::log(1000 * 44 + 1.0));
  expect("log_unique_state_bytes", std::log(4096 * 44 + 1.0));
  expect("log_result_bytes", std::log(8192 * 80 + 1.0));
  expect("log_update_bytes", std::log(16384 * 80 + 2 * 5000 * 44 + 1.0));
  EXPECT_THAT(features, testing::IsEmpty());
}

TEST(ComputeFeaturesTest, OtherOptimizersArePricedByTheirStates) {
  for (OptimizerKind kind : kPricedOptimizers)
    EXPECT_EQ(pricedAs(kind), kind);
  EXPECT_EQ(pricedAs(OptimizerKind::Momentum), OptimizerKind::Adagrad);
  EXPECT_EQ(pricedAs(OptimizerKind::RowWiseRMSprop),
            OptimizerKind::RowWiseAdagrad);
  EXPECT_EQ(pricedAs(OptimizerKind::AdamW), OptimizerKind::Adam);
  EXPECT_EQ(pricedAs(OptimizerKind::FTRL), OptimizerKind::Adam);
  EXPECT_EQ(pricedAs(OptimizerKind::LARS), OptimizerKind::Adagrad);
  EXPECT_EQ(pricedAs(OptimizerKind::LAMB), OptimizerKind::Adam);
  EXPECT_EQ(pricedAs(OptimizerKind::PartialRowWiseLAMB),
            OptimizerKind::Adagrad);
  EXPECT_EQ(pricedAs(OptimizerKind::RowWiseAdagradWithCounter),
            OptimizerKind::RowWiseAdagrad);
  EXPECT_EQ(pricedAs(OptimizerKind::PartialRowWiseAdam),
            OptimizerKind::Adagrad);
  ShardWork work;
  work.rows = 1000;
  work.width = 20;
  work.optimizer = OptimizerKind::PartialRowWiseAdam;
  auto features = featuresOf(work);
  EXPECT_EQ(features["adagrad"], 1);
  // Its own bytes: weights, first moments and a second moment per row.
  EXPECT_FLOAT_EQ(features["log_state_bytes"],
                  static_cast<float>(std::log(1000 * (80 + 80 + 4) + 1.0)));
}

TEST(ComputeFeaturesTest, WithoutStatistics) {
  ShardWork work;
  auto features = featuresOf(work);
  for (const auto &[name, value] : features) {
    EXPECT_TRUE(std::isfinite(value)) << name;
    if (name.starts_with("reuse_") || name.starts_with("lookups_reused_")) {
      EXPECT_EQ(value, 0) << name;
    }
  }
}

TEST(ComputeFeaturesTest, AsAPersonReadsThem) {
  std::span<const std::string_view> names = featureNames();
  int rows = static_cast<int>(
      std::find(names.begin(), names.end(), "log_unique_rows") - names.begin());
  int share = static_cast<int>(
      std::find(names.begin(), names.end(), "width_share") - names.begin());
  EXPECT_EQ(featureValueText(rows, std::log(1 + 4.2e7)), "4.2e+07");
  EXPECT_EQ(featureValueText(rows, std::log(1 + 16384.0)), "16384");
  EXPECT_EQ(featureValueText(share, 0.25), "0.25");
}

} // namespace
