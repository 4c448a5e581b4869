//===- PlacementPolicyTest.cpp - Policy files, features and scores --------===//

#include "neuroshard/CostModel/NeuralPolicy.h"

#include "SmallPolicy.h"
#include "TemporaryFolder.h"
#include "neuroshard/CostModel/ModelLibrary.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/PlacementMdp.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <numbers>
#include <random>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

std::vector<double> applyPlainly(std::span<const DenseLayer> layers,
                                 std::vector<double> x) {
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<double> y;
    for (int64_t o = 0; o < layers[i].out; ++o) {
      double sum = layers[i].bias[static_cast<size_t>(o)];
      for (int64_t k = 0; k < layers[i].in; ++k)
        sum +=
            static_cast<double>(
                layers[i].weight[static_cast<size_t>(o * layers[i].in + k)]) *
            x[static_cast<size_t>(k)];
      y.push_back(i + 1 < layers.size() ? std::max(sum, 0.0) : sum);
    }
    x = std::move(y);
  }
  return x;
}

std::vector<double> embedPlainly(const PlacementPolicyParameters &policy,
                                 const PlacementPiece &piece) {
  std::vector<double> sum(5);
  for (const ShardWork *work : piece.works) {
    std::vector<float> features(kFeatureCount);
    featurize(*work, features);
    std::vector<double> x;
    for (float value : features)
      x.push_back((value - 0.5) / 2);
    std::vector<double> out = applyPlainly(policy.table, x);
    for (size_t k = 0; k < 5; ++k)
      sum[k] += out[k];
  }
  return sum;
}

} // namespace

TEST(PlacementPolicyTest, ScoresFollowTheFormula) {
  PlacementPolicyParameters parameters = smallPolicy(3);
  auto policy = makePlacementPolicy(parameters, "small");
  ShardingProblem problem = smallProblem(6, "3xH200");
  auto model = makeRooflineModel();
  auto mdp = PlacementMdp::make(problem, *model, {});
  ASSERT_TRUE(mdp);
  PlacementTask task = mdp->task();
  auto player = policy->play(task);
  PlacementScale scale(task);
  std::vector<std::vector<double>> sums(3, std::vector<double>(5));
  for (int step = 0; step < 6; ++step) {
    size_t piece = *mdp->next();
    std::span<const PlacementDevice> devices = mdp->devices();
    std::vector<float> scores(3);
    player->scores(piece, devices, scores);
    std::vector<float> features(3 * kPlacementFeatureCount);
    scale.featurize(piece, devices, features);
    std::vector<double> rest(5);
    for (size_t i = static_cast<size_t>(step); i < 6; ++i)
      for (size_t k = 0; k < 5; ++k)
        rest[k] += embedPlainly(parameters, task.pieces[mdp->order()[i]])[k];
    for (size_t d = 0; d < 3; ++d) {
      std::vector<double> x;
      for (double sum : sums[d])
        x.push_back(sum * 3 / 6);
      for (double value : embedPlainly(parameters, task.pieces[piece]))
        x.push_back(value);
      for (double value : rest)
        x.push_back(value / (6 - step));
      for (size_t i = 0; i < kPlacementFeatureCount; ++i)
        x.push_back((features[d * kPlacementFeatureCount + i] - 0.5) / 2);
      double expected = applyPlainly(parameters.head, x)[0];
      EXPECT_NEAR(scores[d], expected, 1e-5 * std::max(1.0, std::abs(expected)))
          << step << " " << d;
    }
    int device = step % 3;
    std::vector<double> own = embedPlainly(parameters, task.pieces[piece]);
    for (size_t k = 0; k < 5; ++k)
      sums[static_cast<size_t>(device)][k] += own[k];
    mdp->place(device);
    player->placed(piece, device);
    scale.placed(piece);
  }
  EXPECT_FALSE(mdp->next());
}

TEST(PlacementPolicyTest, FeaturesAreRelativeToTheTask) {
  // Two pieces of 3 and 1 ms, 30 and 10 bytes, on two devices.
  std::vector<PlacementPiece> pieces(2);
  pieces[0].aloneMs = 3;
  pieces[0].exchangeBytes = 30;
  pieces[1].aloneMs = 1;
  pieces[1].exchangeBytes = 10;
  pieces[0].memoryShare = 0.25;
  pieces[1].memoryShare = 0.5;
  PlacementScale scale({pieces, 2, ObjectiveKind::Step});
  scale.placed(0);
  std::vector<PlacementDevice> devices(2);
  devices[0] = {true, {1, 2}, {1.5, 2.5}, 0.5, 30, 0.25, 0.5};
  devices[1] = {true, {0, 0}, {0.5, 0.5}, 0.25, 0, 0.0, 0.25};
  std::vector<float> out(2 * kPlacementFeatureCount);
  scale.featurize(1, devices, out);
  // A mean device has 2 ms and 20 bytes. Nothing comes later.
  std::vector<float> expected = {1.5f,
                                 0.75f,
                                 1.25f,
                                 1.5f,
                                 0.5f,
                                 0.25f,
                                 0.25f,
                                 0.25f,
                                 0,
                                 2,
                                 1.5f,
                                 0.5f,
                                 0.5f,
                                 0.25f,
                                 0.875f,
                                 0.5f,
                                 0,
                                 0,
                                 0.5f,
                                 0.5f,
                                 0,
                                 static_cast<float>(std::log1p(0.5)),
                                 static_cast<float>(std::numbers::ln2),
                                 static_cast<float>(std::numbers::ln2),
                                 0.75f,
                                 1};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_FLOAT_EQ(out[i], expected[i]) << placementFeatureNames()[i];
}

TEST(PlacementPolicyTest, FeaturesLookAheadForTheLargestPiece) {
  std::vector<PlacementPiece> pieces(4);
  pieces[0].memoryShare = 0.5;
  pieces[1].memoryShare = 0.75;
  pieces[2].memoryShare = 0.25;
  pieces[3].memoryShare = 0.5;
  PlacementScale scale({pieces, 2, ObjectiveKind::Step});
  std::vector<PlacementDevice> devices(2);
  devices[0].memoryShareAfter = 0.375;
  std::vector<float> out(2 * kPlacementFeatureCount);
  // Left for the largest on the first device, the largest, all to come.
  auto expect = [&](size_t piece, float left, float largest, float toCome) {
    scale.featurize(piece, devices, out);
    EXPECT_FLOAT_EQ(out[15], left) << piece;
    EXPECT_FLOAT_EQ(out[16], largest) << piece;
    EXPECT_FLOAT_EQ(out[17], toCome) << piece;
    scale.placed(piece);
  };
  ASSERT_EQ(placementFeatureNames()[15], "memory_left_for_largest");
  expect(0, -0.125f, 0.75f, 0.75f);
  expect(1, 0.125f, 0.5f, 0.375f);
  expect(3, 0.375f, 0.25f, 0.125f);
  expect(2, 0.625f, 0, 0);
}

TEST(PlacementPolicyTest, EqualDevicesScoreTheSame) {
  auto policy = makePlacementPolicy(smallPolicy(5), "small");
  ShardingProblem problem = smallProblem(4, "4xH200");
  auto model = makeRooflineModel();
  auto mdp = PlacementMdp::make(problem, *model, {});
  ASSERT_TRUE(mdp);
  auto player = policy->play(mdp->task());
  std::vector<float> scores(4);
  player->scores(*mdp->next(), mdp->devices(), scores);
  EXPECT_EQ(scores, std::vector<float>(4, scores[0]));
}

TEST(PlacementPolicyTest, FileRoundTrips) {
  PlacementPolicyParameters written = smallPolicy(1);
  written.card = R"({"seed":1})";
  auto file = toTensorFile(written);
  ASSERT_TRUE(file);
  auto read = toPlacementPolicyParameters(*file);
  ASSERT_TRUE(read) << toString(read.error());
  EXPECT_EQ(read->card, written.card);
  EXPECT_EQ(read->tableScale.std, written.tableScale.std);
  EXPECT_EQ(read->deviceScale.max, written.deviceScale.max);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(read->table[i].weight, written.table[i].weight);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(read->head[i].bias, written.head[i].bias);
}

TEST(PlacementPolicyTest, DamagedFilesAreRefused) {
  TensorFile good = *toTensorFile(smallPolicy(1));
  auto refusal = [&](const std::function<void(TensorFile &)> &damage) {
    TensorFile file = good;
    damage(file);
    auto read = toPlacementPolicyParameters(file);
    return read ? std::string("accepted") : toString(read.error());
  };
  EXPECT_THAT(refusal([](auto &f) { f.metadata["schema"] = "other.v1"; }),
              HasSubstr("got 'other.v1'"));
  EXPECT_THAT(refusal([](auto &f) { f.metadata.erase("architecture"); }),
              HasSubstr("architecture"));
  EXPECT_THAT(
      refusal([](auto &f) { f.metadata["device_feature_names"] = "[\"a\"]"; }),
      HasSubstr("trained on other features"));
  EXPECT_THAT(refusal([](auto &f) { f.metadata["card"] = "7"; }),
              HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal([](auto &f) { f.tensors.erase("head.1.bias"); }),
              HasSubstr("head.1.bias"));
  EXPECT_THAT(
      refusal([](auto &f) { f.tensors["extra"] = f.tensors["head.1.bias"]; }),
      HasSubstr("expected 18, got 19"));
  EXPECT_THAT(refusal([](auto &f) {
                f.tensors["head.1.weight"] = f.tensors["head.2.weight"];
                f.tensors["head.1.bias"] = f.tensors["head.2.bias"];
              }),
              HasSubstr("expected 11 inputs"));
  EXPECT_THAT(refusal([](auto &f) {
                std::vector<float> nans(3, NAN);
                f.tensors["head.1.bias"] = makeTensor<float>(nans);
              }),
              HasSubstr("expected finite"));
  EXPECT_THAT(refusal([](auto &f) {
                std::vector<float> zeros(kPlacementFeatureCount, 0.0f);
                f.tensors["device_features.std"] = makeTensor<float>(zeros);
              }),
              HasSubstr("expected positive numbers"));
}

TEST(PlacementPolicyTest, IsFoundBesideTheModelsAndIsNone) {
  test::TemporaryFolder folder;
  std::string path = folder.file("placement_policy.safetensors");
  ASSERT_TRUE(writeTensorFile(*toTensorFile(smallPolicy(1)), path));
  setenv("NEUROSHARD_MODELS", folder.path().c_str(), 1);
  auto policy = readPlacementPolicy();
  auto models = readModelsFolder(folder.path());
  unsetenv("NEUROSHARD_MODELS");
  ASSERT_TRUE(policy) << toString(policy.error());
  EXPECT_EQ((*policy)->name(), "placement_policy");
  ASSERT_TRUE(models) << toString(models.error());
  EXPECT_TRUE(models->compute.empty());
  auto model = makeCostModel(path, *parseTopology("2xCPU"));
  ASSERT_FALSE(model);
  EXPECT_THAT(toString(model.error()), HasSubstr("not a cost model"));
}

TEST(PlacementPolicyTest, AMissingFileIsNamed) {
  auto policy = readPlacementPolicy("no/such.safetensors");
  ASSERT_FALSE(policy);
  EXPECT_THAT(toString(policy.error()), HasSubstr("no/such.safetensors"));
}
