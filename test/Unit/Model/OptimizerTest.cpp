//===- OptimizerTest.cpp - Properties and settings of optimizers ----------===//
//
// The table of optimizers agrees with itself, says where weight decay goes, and
// refuses settings that cannot be together.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Model/Optimizer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

using namespace neuroshard;

namespace {

TEST(OptimizerTest, NamesAreThoseOfTheirKinds) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kOptimizers.size(); ++i) {
    auto kind = static_cast<OptimizerKind>(i);
    EXPECT_EQ(toString(kind), kOptimizers[i].name);
    EXPECT_EQ(parseOptimizerKind(kOptimizers[i].name), kind);
    EXPECT_TRUE(names.insert(kOptimizers[i].name).second);
    EXPECT_TRUE(isOptimizerKind(kind));
  }
  EXPECT_FALSE(isOptimizerKind(static_cast<OptimizerKind>(kOptimizers.size())));
}

TEST(OptimizerTest, EachStateHasAName) {
  for (const OptimizerProperties &known : kOptimizers)
    for (size_t i = 0; i < known.stateNames.size(); ++i)
      EXPECT_EQ(!known.stateNames[i].empty(),
                static_cast<int>(i) < known.states.count())
          << known.name << " state " << i;
}

TEST(OptimizerTest, DecayGoesWhereTheOptimizerOrItsSettingSays) {
  auto decayOf = [](OptimizerKind kind, WeightDecayMode mode) {
    return weightDecayOf(
        {.kind = kind, .weightDecay = 0.5, .weightDecayMode = mode});
  };
  EXPECT_EQ(decayOf(OptimizerKind::Momentum, WeightDecayMode::Default),
            WeightDecayMode::L2);
  EXPECT_EQ(decayOf(OptimizerKind::Momentum, WeightDecayMode::Decoupled),
            WeightDecayMode::Decoupled);
  EXPECT_EQ(decayOf(OptimizerKind::AdamW, WeightDecayMode::Default),
            WeightDecayMode::Decoupled);
  EXPECT_EQ(decayOf(OptimizerKind::PartialRowWiseAdam, WeightDecayMode::L2),
            WeightDecayMode::L2);
  EXPECT_EQ(weightDecayOf({.kind = OptimizerKind::AdamW}), std::nullopt);
}

TEST(OptimizerTest, SumsBeginAtTheInitialAccumulator) {
  for (const OptimizerProperties &known : kOptimizers)
    for (int i = 0; i < known.states.count(); ++i) {
      bool isSum = known.stateNames[static_cast<size_t>(i)] == "sum";
      EXPECT_EQ(initialState({.kind = *parseOptimizerKind(known.name),
                              .initialAccumulator = 0.5},
                             i),
                isSum ? 0.5 : 0)
          << known.name << " state " << i;
    }
}

TEST(OptimizerTest, NormsNeedWeightsUnderL2DecayOfRowWiseOptimizers) {
  auto need = [](OptimizerKind kind, WeightDecayMode mode, double decay) {
    return normsNeedWeights(
        {.kind = kind, .weightDecay = decay, .weightDecayMode = mode});
  };
  for (OptimizerKind kind :
       {OptimizerKind::RowWiseAdagrad, OptimizerKind::PartialRowWiseAdam}) {
    EXPECT_TRUE(need(kind, WeightDecayMode::L2, 0.5));
    EXPECT_FALSE(need(kind, WeightDecayMode::Decoupled, 0.5));
    EXPECT_FALSE(need(kind, WeightDecayMode::L2, 0));
  }
  EXPECT_FALSE(need(OptimizerKind::Adagrad, WeightDecayMode::L2, 0.5));
}

/// The weights of FTRL follow from its states, which decoupled decay leaves;
/// trust ratios have their own place for decay.
TEST(OptimizerTest, SomeHaveOneModeOfWeightDecay) {
  for (const OptimizerProperties &known : kOptimizers)
    for (WeightDecayMode mode : {WeightDecayMode::Default, WeightDecayMode::L2,
                                 WeightDecayMode::Decoupled}) {
      std::string expected;
      std::string name(known.name);
      bool isDecoupled = name == "adamw" || name.ends_with("lamb");
      if (isDecoupled && mode == WeightDecayMode::L2)
        expected = name + " has decoupled weight decay alone, got: l2";
      if ((name == "ftrl" || name == "lars_sgd") &&
          mode == WeightDecayMode::Decoupled)
        expected = name + " has l2 weight decay alone, got: decoupled";
      std::optional<SettingError> error = settingError(
          {.kind = *parseOptimizerKind(known.name), .weightDecayMode = mode});
      EXPECT_EQ(error ? error->message : "", expected);
    }
}

TEST(OptimizerTest, PenaltiesAreOfFTRLAlone) {
  for (const OptimizerProperties &known : kOptimizers) {
    OptimizerKind kind = *parseOptimizerKind(known.name);
    std::optional<SettingError> first =
        settingError({.kind = kind, .l1Penalty = 0.5});
    std::optional<SettingError> second =
        settingError({.kind = kind, .l2Penalty = 0.5});
    if (kind == OptimizerKind::FTRL) {
      EXPECT_FALSE(first || second);
      continue;
    }
    ASSERT_TRUE(first && second);
    EXPECT_STREQ(first->setting, "l1_penalty");
    EXPECT_STREQ(second->setting, "l2_penalty");
    EXPECT_EQ(first->message, std::string(known.name) + " has no penalties");
  }
}

TEST(OptimizerTest, EtaIsOfLARSAlone) {
  for (const OptimizerProperties &known : kOptimizers) {
    OptimizerKind kind = *parseOptimizerKind(known.name);
    EXPECT_FALSE(settingError({.kind = kind}));
    std::optional<SettingError> error =
        settingError({.kind = kind, .eta = 0.5});
    EXPECT_EQ(error.has_value(), kind != OptimizerKind::LARS);
    if (error) {
      EXPECT_STREQ(error->setting, "eta");
      EXPECT_EQ(error->message, std::string(known.name) + " has no eta");
    }
  }
}

TEST(OptimizerTest, ExchangesNormsOfSplitColumnsOnlyIfTheStepNeedsThem) {
  const std::map<std::string_view, int64_t> norms = {
      {"rowwise_adagrad", 1},
      {"partial_rowwise_adam", 1},
      {"rowwise_rmsprop", 1},
      {"lars_sgd", 2},
      {"lamb", 2},
      {"partial_rowwise_lamb", 4}};
  for (const OptimizerProperties &known : kOptimizers) {
    OptimizerKind kind = *parseOptimizerKind(known.name);
    auto found = norms.find(known.name);
    bool hasNorms = found != norms.end();
    EXPECT_EQ(normsPerRow(kind), hasNorms ? found->second : 0) << known.name;
    EXPECT_EQ(needsNormExchange(kind, OptimizerSemantics::Exact, true),
              hasNorms);
    EXPECT_FALSE(needsNormExchange(kind, OptimizerSemantics::Exact, false));
    EXPECT_FALSE(needsNormExchange(kind, OptimizerSemantics::PerShard, true));
  }
}

} // namespace
