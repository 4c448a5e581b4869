//===- StepSizeTest.cpp - Step sizes of the optimizers --------------------===//
//
// The factors of an update that follow from learning rate and step: bias
// corrections of Adam and its kin, and what decoupled weight decay keeps.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace neuroshard::runtime {
namespace {

TEST(StepSizeTest, IsTheLearningRateUnlessBiasIsCorrected) {
  for (OptimizerKind kind :
       {OptimizerKind::SGD, OptimizerKind::Adagrad,
        OptimizerKind::RowWiseAdagrad, OptimizerKind::Momentum})
    EXPECT_EQ(stepSize({.kind = kind}, 0.3f, 0).size, 0.3f);
  for (OptimizerKind kind : {OptimizerKind::Adam, OptimizerKind::AdamW,
                             OptimizerKind::PartialRowWiseAdam}) {
    Optimizer optimizer{.kind = kind, .beta1 = 0.5, .beta2 = 0.75};
    EXPECT_EQ(stepSize(optimizer, 0.5f, 1).size, 0.5f * 0.5f / 0.5f);
    EXPECT_EQ(stepSize(optimizer, 0.5f, 3).size,
              static_cast<float>(0.5 * std::sqrt(1 - 0.421875) / 0.875));
    EXPECT_THROW(stepSize(optimizer, 0.5f, 0), RuntimeError);
  }
}

TEST(StepSizeTest, DecoupledDecayKeepsAShareOfTheWeights) {
  Optimizer optimizer{.kind = OptimizerKind::AdamW, .weightDecay = 0.25};
  EXPECT_EQ(stepSize(optimizer, 0.5f, 7).kept, 0.875f);
  optimizer.kind = OptimizerKind::SGD;
  EXPECT_EQ(stepSize(optimizer, 0.5f, 7).kept, 1);
  optimizer.weightDecayMode = WeightDecayMode::Decoupled;
  EXPECT_EQ(stepSize(optimizer, 0.5f, 7).kept, 0.875f);
  optimizer.weightDecay = 0;
  EXPECT_EQ(stepSize(optimizer, 0.5f, 7).kept, 1);
}

TEST(StepSizeTest, TrustRatiosCorrectMomentsAndNotTheRate) {
  Optimizer lars{.kind = OptimizerKind::LARS, .weightDecay = 0.25};
  EXPECT_EQ(stepSize(lars, 0.5f, 0), (StepSize{.size = 0.5f}));
  for (OptimizerKind kind :
       {OptimizerKind::LAMB, OptimizerKind::PartialRowWiseLAMB}) {
    Optimizer optimizer{
        .kind = kind, .beta1 = 0.5, .beta2 = 0.75, .weightDecay = 0.25};
    EXPECT_EQ(stepSize(optimizer, 0.5f, 1),
              (StepSize{.size = 0.5f, .first = 2, .second = 2}));
    StepSize third = stepSize(optimizer, 0.5f, 3);
    EXPECT_EQ(third.first, static_cast<float>(1 / 0.875));
    EXPECT_EQ(third.second, static_cast<float>(1 / std::sqrt(1 - 0.421875)));
    EXPECT_THROW(stepSize(optimizer, 0.5f, 0), RuntimeError);
  }
}

TEST(StepSizeTest, CountersTakeTheStepThatF32CanCount) {
  Optimizer optimizer{.kind = OptimizerKind::RowWiseAdagradWithCounter,
                      .weightDecay = 0.25,
                      .weightDecayMode = WeightDecayMode::Decoupled,
                      .counterHalflife = 4};
  EXPECT_EQ(stepSize(optimizer, 0.5f, 7), (StepSize{.size = 0.5f, .step = 7}));
  EXPECT_EQ(stepSize(optimizer, 0.5f, 1 << 24).step, 16777216.0f);
  EXPECT_THROW(stepSize(optimizer, 0.5f, 0), RuntimeError);
  EXPECT_THROW(stepSize(optimizer, 0.5f, (1 << 24) + 1), RuntimeError);
  EXPECT_EQ(stepSize({.kind = OptimizerKind::RowWiseAdagrad}, 0.5f, 7).step, 0);
}

TEST(StepSizeTest, FTRLDividesByALearningRateAboveZero) {
  Optimizer optimizer{.kind = OptimizerKind::FTRL};
  EXPECT_EQ(stepSize(optimizer, 0.5f, 0).size, 0.5f);
  EXPECT_THROW(stepSize(optimizer, 0.0f, 1), RuntimeError);
  EXPECT_THROW(stepSize(optimizer, -0.5f, 1), RuntimeError);
}

TEST(StepSizeTest, OnlyStochasticRoundingHasASeedAndEachStepAnother) {
  Optimizer optimizer;
  EXPECT_EQ(stepSize(optimizer, 0.5f, 1).seed, 0u);
  optimizer.stochasticRounding = true;
  std::set<uint32_t> seeds;
  for (int64_t step = 0; step < 1000; ++step)
    seeds.insert(stepSize(optimizer, 0.5f, step).seed);
  EXPECT_EQ(seeds.size(), 1000u);
}

/// Two optimizers of which haveSameStepSize is true have the same, and of each
/// pair with other factors it is false.
TEST(StepSizeTest, SharedOnlyByOptimizersWithEqualFactors) {
  std::vector<Optimizer> all;
  for (const OptimizerProperties &known : kOptimizers)
    for (double beta : {0.5, 0.75})
      for (double decay : {0.0, 0.125, 0.25})
        for (bool isStochastic : {false, true})
          all.push_back({.kind = *parseOptimizerKind(known.name),
                         .beta1 = beta,
                         .weightDecay = decay,
                         .stochasticRounding = isStochastic});
  int shared = 0;
  for (const Optimizer &a : all)
    for (const Optimizer &b : all) {
      StepSize one = stepSize(a, 0.5f, 2), other = stepSize(b, 0.5f, 2);
      bool equal = one == other;
      EXPECT_EQ(haveSameStepSize(a, b), equal)
          << toString(a.kind) << " and " << toString(b.kind);
      shared += equal;
    }
  EXPECT_GT(shared, static_cast<int>(all.size()));
}

} // namespace
} // namespace neuroshard::runtime
