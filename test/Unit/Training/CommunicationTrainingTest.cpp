//===- CommunicationTrainingTest.cpp - Training on made-up exchanges ------===//

#include "SyntheticExchanges.h"

#include "neuroshard/Training/CommunicationEvaluation.h"
#include "neuroshard/Training/CommunicationTraining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::HasSubstr;

namespace {

TrainingOptions quick() {
  TrainingOptions options;
  options.members = 2;
  options.epochs = 40;
  options.minSteps = 200;
  return options;
}

Split splitOf(const CommunicationSamples &samples,
              std::vector<int> leaveOut = {}) {
  auto split = splitSamples(rolesOf(samples, leaveOut), 0.15, 0, 1);
  EXPECT_TRUE(split.has_value());
  return *split;
}

const EvaluationRow &rowOf(const std::vector<EvaluationRow> &rows,
                           const std::string &subject) {
  for (const EvaluationRow &row : rows)
    if (row.subject == subject)
      return row;
  ADD_FAILURE() << "no row '" << subject << "'";
  return rows.front();
}

TEST(CommunicationTraining, BeatsTheBaselinesAlsoForNumbersItHasNotSeen) {
  CommunicationSamples samples = makeSyntheticExchanges(200);
  Split split = splitOf(samples, {3, 6});
  auto parameters = trainCommunication(samples, split, quick());
  ASSERT_TRUE(parameters) << toString(parameters.error());
  auto rows = evaluateModel(CommunicationModel(*parameters), samples, split);
  const EvaluationRow &seen =
      rowOf(rows, "model, numbers of devices in training");
  const EvaluationRow &unseen =
      rowOf(rows, "model, numbers of devices left out");
  EXPECT_EQ(seen.samples, 3 * 60u);
  EXPECT_EQ(unseen.samples, 2 * 220u);
  EXPECT_LT(seen.figures[0]->error, 0.05);
  EXPECT_LT(unseen.figures[0]->error, 0.10);
  EXPECT_GT(seen.figures[1]->tau, 0.9);

  EvaluationRow closed = evaluateClosedForm(samples, split);
  EXPECT_LT(seen.figures[0]->error, closed.figures[0]->error);
  EvaluationRow published = evaluatePublished(samples, split, 200, 1, nullptr);
  ASSERT_TRUE(published.figures[0]);
  EXPECT_LT(seen.figures[0]->error, published.figures[0]->error);
  // Pure noise: twice 3 % of the part that is not waiting.
  EXPECT_LT(rowOf(repeatFloors(samples), "repeats, all").figures[0]->error,
            0.05);
}

TEST(CommunicationTraining, PlainInferenceAgreesWithLibTorch) {
  CommunicationSamples samples = makeSyntheticExchanges(40);
  Split split = splitOf(samples);
  auto parameters = trainCommunication(samples, split, quick());
  ASSERT_TRUE(parameters) << toString(parameters.error());
  std::vector<size_t> all(samples.samples.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<double> torch = predictWithTorch(*parameters, samples, all);
  size_t next = 0;
  for (const auto &times :
       predictSamples(CommunicationModel(*parameters), samples, all))
    for (double ms : times) {
      EXPECT_NEAR(ms / torch[next], 1, 1e-5) << next;
      ++next;
    }
  EXPECT_EQ(next, torch.size());
}

TEST(CommunicationTraining, TheSameSeedGivesTheSameModel) {
  CommunicationSamples samples = makeSyntheticExchanges(30);
  Split split = splitOf(samples);
  auto weights = [&](int threads) {
    TrainingOptions options = quick();
    options.epochs = 3;
    options.minSteps = 10;
    options.threads = threads;
    auto parameters = trainCommunication(samples, split, options);
    EXPECT_TRUE(parameters.has_value());
    return toTensorFile(*parameters)->tensors.at("member1.head.2.weight").bytes;
  };
  EXPECT_EQ(weights(1), weights(2));
}

TEST(CommunicationTraining, SamplesItCannotLearnFromAreNamed) {
  CommunicationSamples samples = makeSyntheticExchanges(30);
  Split split = splitOf(samples);
  samples.samples[split.training[2]].timesMs[1] = -1;
  auto parameters = trainCommunication(samples, split, quick());
  ASSERT_FALSE(parameters);
  EXPECT_THAT(toString(parameters.error()),
              HasSubstr("expected positive times, got: -1.0"));
}

} // namespace
