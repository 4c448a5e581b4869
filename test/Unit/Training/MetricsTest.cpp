//===- MetricsTest.cpp - Error and rank correlation against definitions ---===//

#include "neuroshard/Training/Metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

using namespace neuroshard;

namespace {

/// Tau-b straight from its definition, over all pairs.
double tauOverAllPairs(const std::vector<double> &a,
                       const std::vector<double> &b) {
  double difference = 0, untiedA = 0, untiedB = 0;
  auto sign = [](double x) { return static_cast<double>((x > 0) - (x < 0)); };
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = i + 1; j < a.size(); ++j) {
      difference += sign(a[i] - a[j]) * sign(b[i] - b[j]);
      untiedA += a[i] != a[j];
      untiedB += b[i] != b[j];
    }
  return difference / std::sqrt(untiedA * untiedB);
}

TEST(Metrics, RelativeErrorIsRelativeToTheMeasurement) {
  std::vector<double> predicted = {1.1, 3, 2};
  std::vector<double> measured = {1, 4, 2};
  EXPECT_NEAR(meanRelativeError(predicted, measured), (0.1 + 0.25) / 3, 1e-15);
  EXPECT_EQ(meanRelativeError({}, {}), 0);
}

TEST(Metrics, RelativeDifferenceTreatsBothSidesAlike) {
  std::vector<double> a = {1, 3}, b = {3, 3};
  EXPECT_DOUBLE_EQ(meanRelativeDifference(a, b), 0.5);
  EXPECT_DOUBLE_EQ(meanRelativeDifference(b, a), 0.5);
}

TEST(Metrics, TauKnowsOrderAndOppositeOrder) {
  std::vector<double> a = {1, 2, 3, 4}, reversed = {9, 7, 5, 3};
  EXPECT_DOUBLE_EQ(kendallTau(a, a), 1);
  EXPECT_DOUBLE_EQ(kendallTau(a, reversed), -1);
  // One of six pairs is swapped.
  std::vector<double> swapped = {1, 3, 2, 4};
  EXPECT_DOUBLE_EQ(kendallTau(a, swapped), 4.0 / 6);
  std::vector<double> same(4, 1.0);
  EXPECT_EQ(kendallTau(a, same), 0);
  EXPECT_EQ(kendallTau({}, {}), 0);
}

TEST(Metrics, TauAgreesWithItsDefinitionWithAndWithoutTies) {
  std::mt19937 random(5);
  for (int distinct : {3, 10, 100000})
    for (int count : {2, 3, 7, 64, 301}) {
      std::vector<double> a, b;
      for (int i = 0; i < count; ++i) {
        a.push_back(static_cast<double>(random() % distinct));
        b.push_back(a.back() + static_cast<double>(random() % distinct));
      }
      double expected = tauOverAllPairs(a, b);
      if (!std::isfinite(expected))
        expected = 0;
      EXPECT_NEAR(kendallTau(a, b), expected, 1e-12) << distinct << count;
    }
}

} // namespace
