//===- ComputeTrainingTest.cpp - Training on made-up measurements ---------===//

#include "SyntheticSamples.h"

#include "neuroshard/Training/ComputeEvaluation.h"
#include "neuroshard/Training/ComputeTraining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using ::testing::HasSubstr;

namespace {

TrainingOptions quickOptions() {
  TrainingOptions options;
  options.members = 2;
  options.epochs = 30;
  options.minSteps = 200;
  return options;
}

Split splitOf(const ComputeSamples &samples, size_t limit = 0) {
  auto split = splitSamples(rolesOf(samples), 0.15, limit, 1);
  EXPECT_TRUE(split.has_value());
  return *split;
}

const DeviceClass &cpu() { return *findDeviceClass("CPU"); }

ComputeAgreement judge(const NeuralComputeParameters &parameters,
                       const ComputeSamples &samples, const Split &split) {
  return agreement(
      predictSamples(NeuralCompute(parameters), cpu(), samples, split.heldOut),
      correctedTimes(samples, split.heldOut));
}

TEST(ComputeTraining, BeatsTheBaselinesOnTablesItHasNotSeen) {
  ComputeSamples samples = makeSyntheticSamples({.count = 1200});
  Split split = splitOf(samples);
  TrainingOptions options = quickOptions();
  options.epochs = 80;
  auto parameters = trainCompute(samples, split, options);
  ASSERT_TRUE(parameters) << toString(parameters.error());
  ComputeAgreement ours = judge(*parameters, samples, split);
  EXPECT_LT(ours.forward.error, 0.10);
  EXPECT_LT(ours.backward.error, 0.10);
  EXPECT_LT(ours.total.error, 0.08);
  EXPECT_GT(ours.total.tau, 0.93);

  Agreement published =
      *evaluatePublished(samples, split, 200, 1, nullptr).figures[2];
  EXPECT_LT(ours.total.error, published.error);
  EXPECT_GT(ours.total.tau, published.tau);
  auto roofline = evaluateRoofline(cpu(), samples, split);
  EXPECT_LT(ours.forward.error, roofline[1].figures[0]->error);
}

TEST(ComputeTraining, PlainInferenceAgreesWithLibTorch) {
  ComputeSamples samples = makeSyntheticSamples({.count = 300});
  Split split = splitOf(samples);
  auto parameters = trainCompute(samples, split, quickOptions());
  ASSERT_TRUE(parameters) << toString(parameters.error());
  for (const std::vector<size_t> &part : {split.training, split.heldOut}) {
    std::vector<ComputeMs> torch = predictWithTorch(*parameters, samples, part);
    std::vector<ComputeMs> plain =
        predictSamples(NeuralCompute(*parameters), cpu(), samples, part);
    for (size_t i = 0; i < part.size(); ++i) {
      EXPECT_NEAR(plain[i].forwardMs / torch[i].forwardMs, 1, 1e-5) << i;
      EXPECT_NEAR(plain[i].backwardMs / torch[i].backwardMs, 1, 1e-5) << i;
    }
  }
}

TEST(ComputeTraining, TheSameSeedGivesTheSameModelWithAnyNumberOfThreads) {
  ComputeSamples samples = makeSyntheticSamples({.count = 200});
  Split split = splitOf(samples);
  auto tensorsOf = [&](int threads, uint64_t seed) {
    TrainingOptions options = quickOptions();
    options.epochs = 5;
    options.minSteps = 10;
    options.threads = threads;
    options.seed = seed;
    auto parameters = trainCompute(samples, split, options);
    EXPECT_TRUE(parameters.has_value());
    return toTensorFile(*parameters)->tensors.at("member1.head.1.weight").bytes;
  };
  EXPECT_EQ(tensorsOf(1, 3), tensorsOf(2, 3));
  EXPECT_NE(tensorsOf(1, 3), tensorsOf(1, 4));
}

TEST(ComputeTraining, AFewSamplesOfASlowerMachineTuneAModelBetterThanNone) {
  ComputeSamples home = makeSyntheticSamples({.count = 800});
  ComputeSamples away =
      makeSyntheticSamples({.count = 300, .slowness = 3, .seed = 11});
  auto model = trainCompute(home, splitOf(home), quickOptions());
  ASSERT_TRUE(model) << toString(model.error());
  Split split = splitOf(away, 40);
  ASSERT_EQ(split.training.size() + split.validation.size(), 40u);
  auto tuned = trainCompute(away, split, quickOptions(), &*model);
  auto scratch = trainCompute(away, split, quickOptions());
  ASSERT_TRUE(tuned && scratch);
  EXPECT_GT(judge(*model, away, split).total.error, 0.5);
  double tunedError = judge(*tuned, away, split).total.error;
  EXPECT_LT(tunedError, 0.15);
  EXPECT_LT(tunedError, judge(*scratch, away, split).total.error);
}

TEST(ComputeTraining, SamplesItCannotLearnFromAreNamed) {
  ComputeSamples samples = makeSyntheticSamples({.count = 120});
  Split split = splitOf(samples);
  samples.samples[split.training[3]].corrected.backwardMs = 0;
  auto parameters = trainCompute(samples, split, quickOptions());
  ASSERT_FALSE(parameters);
  EXPECT_EQ(toString(parameters.error()),
            "samples[" + std::to_string(split.training[3]) +
                "]: expected positive times, got: 0.000000 ms");
  samples.metadata["device_class"] = "abacus";
  parameters = trainCompute(samples, split, quickOptions());
  ASSERT_FALSE(parameters);
  EXPECT_THAT(toString(parameters.error()),
              HasSubstr("metadata.device_class: expected one of"));
}

TEST(ComputeTraining, MergedSamplesKeepTheirTablesAndRepeats) {
  std::vector<ComputeSamples> parts = {
      makeSyntheticSamples({.count = 120, .repeats = 5}),
      makeSyntheticSamples({.count = 110, .repeats = 5, .seed = 8})};
  ComputeSamples second = parts[1];
  auto merged = mergeSamples(parts);
  ASSERT_TRUE(merged) << toString(merged.error());
  ASSERT_EQ(merged->samples.size(), 240u);
  EXPECT_EQ(merged->samples[125 + 110].repeatOf, 125);
  for (size_t i = 0; i < second.samples.size(); ++i) {
    const ComputeSample &sample = merged->samples[125 + i];
    EXPECT_EQ(sample.measured.forwardMs, second.samples[i].measured.forwardMs);
    EXPECT_EQ(*sample.shards[0].access, *second.samples[i].shards[0].access);
  }
  parts[1].metadata["device_class"] = "H200";
  EXPECT_THAT(toString(mergeSamples(parts).error()),
              HasSubstr("samples of one device class, got CPU and H200"));
}

} // namespace
