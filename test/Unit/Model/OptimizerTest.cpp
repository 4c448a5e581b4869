//===- OptimizerTest.cpp - Properties and settings of optimizers ----------===//
//
// The table of optimizers agrees with itself, says where weight decay goes, and
// refuses settings that cannot be together.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Model/Optimizer.h"

#include <gmock/gmock.h>
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

std::string counterMessage(Optimizer optimizer) {
  std::optional<SettingError> error = settingError(optimizer);
  return error ? error->setting + (": " + error->message) : "";
}

TEST(OptimizerTest, CountersAreOfOneOptimizer) {
  for (const OptimizerProperties &known : kOptimizers) {
    OptimizerKind kind = *parseOptimizerKind(known.name);
    std::string name(known.name);
    bool has = kind == OptimizerKind::RowWiseAdagradWithCounter;
    EXPECT_EQ(counterMessage(
                  {.kind = kind, .weightDecayMode = WeightDecayMode::AdagradW}),
              has ? ""
                  : "weight_decay_mode: adagradw is of "
                    "rowwise_adagrad_with_counter alone, got: " +
                        name);
  }
}

TEST(OptimizerTest, AdjustmentIterIsAStepOrNone) {
  auto message = [](double iter) {
    return counterMessage({.kind = OptimizerKind::RowWiseAdagradWithCounter,
                           .adjustmentIter = iter});
  };
  EXPECT_EQ(message(-1), "");
  EXPECT_EQ(message(10), "");
  EXPECT_EQ(message(-2), "adjustment_iter: must be at least -1, got: -2");
  EXPECT_EQ(message(2.5),
            "adjustment_iter: must be a whole number of steps, got: 2.5");
}

/// FBGEMM takes counter_halflife / row_counter of the decay, which below 0
/// makes weights grow.
TEST(OptimizerTest, HalflivesFitTheirWeightDecay) {
  auto message = [](WeightDecayMode mode, double decay, double halflife) {
    return counterMessage({.kind = OptimizerKind::RowWiseAdagradWithCounter,
                           .weightDecay = decay,
                           .weightDecayMode = mode,
                           .counterHalflife = halflife});
  };
  using testing::HasSubstr;
  for (WeightDecayMode mode :
       {WeightDecayMode::L2, WeightDecayMode::Decoupled}) {
    EXPECT_EQ(message(mode, 0.5, 0.5), "");
    EXPECT_EQ(message(mode, 0, -1), "");
    EXPECT_THAT(message(mode, 0.5, 0), HasSubstr("must be above 0"));
    EXPECT_THAT(message(mode, 0.5, -1), HasSubstr("got: -1"));
    EXPECT_THAT(message(mode, 0, -2), HasSubstr("adagradw alone, got: -2"));
  }
  for (double halflife : {-2.0, -1.0, 0.0, 0.5, 4.0})
    EXPECT_EQ(message(WeightDecayMode::AdagradW, 0.5, halflife), "");
  for (double halflife : {-3.0, -1.5, -0.5})
    EXPECT_THAT(message(WeightDecayMode::AdagradW, 0.5, halflife),
                HasSubstr("must be a number of steps"));
}

/// By torch.optim, FBGEMM and the papers that docs/kernels.md names.
TEST(OptimizerTest, EachTakesItsOwnNumbersAlone) {
  const std::map<std::string_view, std::set<std::string_view>> own = {
      {"sgd", {}},
      {"adagrad", {"eps", "initial_accumulator"}},
      {"rowwise_adagrad", {"eps", "initial_accumulator"}},
      {"adam", {"eps", "beta1", "beta2"}},
      {"momentum", {"beta1"}},
      {"adamw", {"eps", "beta1", "beta2"}},
      {"partial_rowwise_adam", {"eps", "beta1", "beta2"}},
      {"rowwise_rmsprop", {"eps", "beta2"}},
      {"ftrl", {"eps", "initial_accumulator", "l1_penalty", "l2_penalty"}},
      {"lars_sgd", {"beta1", "eta"}},
      {"lamb", {"eps", "beta1", "beta2"}},
      {"partial_rowwise_lamb", {"eps", "beta1", "beta2"}},
      {"rowwise_adagrad_with_counter",
       {"eps", "initial_accumulator", "counter_halflife", "adjustment_iter",
        "adjustment_ub"}}};
  ASSERT_EQ(own.size(), kOptimizers.size());
  for (const OptimizerProperties &known : kOptimizers)
    for (const NumberSetting &setting : kNumberSettings) {
      std::string_view name = setting.name;
      bool has = own.at(known.name).contains(name) || name == "weight_decay" ||
                 name == "max_gradient";
      Optimizer optimizer{.kind = *parseOptimizerKind(known.name)};
      EXPECT_FALSE(settingError(optimizer));
      optimizer.*setting.value = 4;
      // Which weight decay fits which halflife is another rule.
      if (name == "weight_decay")
        optimizer.counterHalflife =
            known.hasCounters ? 4 : optimizer.counterHalflife;
      std::optional<SettingError> error = settingError(optimizer);
      ASSERT_EQ(!error, has) << known.name << " " << name;
      if (!has) {
        EXPECT_EQ(error->setting, name);
        EXPECT_THAT(error->message,
                    testing::StartsWith(std::string(known.name) + " has no " +
                                        setting.name + "; it has "));
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
      {"partial_rowwise_lamb", 4},
      {"rowwise_adagrad_with_counter", 1}};
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
