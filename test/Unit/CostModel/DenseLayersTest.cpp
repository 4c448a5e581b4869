//===- DenseLayersTest.cpp - All instruction sets give the same bits ------===//

#include "Layers/DenseLayers.h"
#include "SmallModel.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

std::vector<InstructionSet> available() {
  std::vector<InstructionSet> all;
  for (InstructionSet i :
       {InstructionSet::Baseline, InstructionSet::AVX2, InstructionSet::AVX512})
    if (i <= widestInstructionSet())
      all.push_back(i);
  return all;
}

TEST(DenseLayersTest, EveryInstructionSetGivesTheSameBits) {
  NeuralComputeParameters model = randomModel();
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-9, 12);
  for (size_t rows : {1, 7, 32}) {
    std::vector<double> sums(rows * kSumWidth);
    for (double &sum : sums)
      sum = std::exp(exponent(random));
    std::vector<float> x(kFeatureCount, 0.3f), first(2 * dense::kBlockRows),
        firstTimes(first), firstHidden(kTableHidden0);
    for (InstructionSet instructions : available()) {
      std::vector<float> logs(2 * dense::kBlockRows), times(logs),
          hidden(kTableHidden0);
      dense::headRows(instructions, dense::PackedHead(model.members[0].head),
                      sums.data(), kSumWidth, rows, logs.data());
      dense::exponentials(instructions, logs.data(), rows, times.data());
      dense::affine(instructions, dense::PackedLayer(model.members[0].table[0]),
                    x.data(), hidden.data());
      if (instructions == InstructionSet::Baseline) {
        first = logs;
        firstTimes = times;
        firstHidden = hidden;
        EXPECT_NE(times[0], 0);
      }
      EXPECT_EQ(logs, first);
      EXPECT_EQ(times, firstTimes);
      EXPECT_EQ(hidden, firstHidden);
    }
  }
}

TEST(DenseLayersTest, Exponentials) {
  std::vector<float> x = {0, 1, -1, 10, -20, 59, 1e30f, -1e30f, NAN};
  std::vector<float> expected = {0, 1, -1, 10, -20, 59, 60, -60, 60};
  std::vector<float> y(x.size());
  for (InstructionSet instructions : available()) {
    dense::exponentials(instructions, x.data(), x.size(), y.data());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i] / std::exp(static_cast<double>(expected[i])), 1, 5e-7)
          << x[i];
  }
}

} // namespace
