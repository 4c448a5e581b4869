//===- NeuralComputeFileTest.cpp - Model files: round trip and damage -----===//

#include "SmallModel.h"
#include "TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A small model, so that the tests are quick.
NeuralComputeParameters smallModel() { return randomModel({2, 8, 6, 4, 5}); }

void expectSame(const DenseLayer &a, const DenseLayer &b) {
  EXPECT_EQ(a.in, b.in);
  EXPECT_EQ(a.out, b.out);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.bias, b.bias);
}

/// Every error of reading the model's file after `damage`.
template <typename Damage> std::string errorsAfter(Damage damage) {
  Expected<TensorFile> file = toTensorFile(smallModel());
  damage(*file);
  Expected<NeuralComputeParameters> read = toComputeParameters(*file);
  return read ? "no error" : toString(read.error());
}

/// Every error of the model after `damage`.
template <typename Damage> std::string wrongAfter(Damage damage) {
  NeuralComputeParameters model = smallModel();
  damage(model);
  EXPECT_EQ(toString(check(model)), toString(toTensorFile(model).error()));
  return toString(check(model));
}

TEST(NeuralComputeFileTest, RoundTrip) {
  TemporaryFolder folder;
  NeuralComputeParameters written = smallModel();
  written.features.mean[3] = 0.125f;
  written.maxShards = 200;
  written.measured = false;
  written.interval = {0.75, 1.5};
  Expected<TensorFile> file = toTensorFile(written);
  ASSERT_TRUE(file) << toString(file.error());
  EXPECT_EQ(file->metadata["schema"], "neuroshard.compute_model.v1");
  EXPECT_EQ(file->metadata["architecture"], "set-mlp");
  EXPECT_TRUE(file->get<float>("member1.table.0.weight", {8, kFeatureCount}));
  EXPECT_TRUE(file->get<float>("member1.head.1.bias", {2}));
  ASSERT_TRUE(writeTensorFile(*file, folder.file("m.safetensors")));

  auto read =
      toComputeParameters(*readTensorFile(folder.file("m.safetensors")));
  ASSERT_TRUE(read) << toString(read.error());
  EXPECT_EQ(read->features.mean, written.features.mean);
  EXPECT_EQ(read->features.std, written.features.std);
  EXPECT_EQ(read->features.min, written.features.min);
  EXPECT_EQ(read->features.max, written.features.max);
  EXPECT_EQ(read->deviceClass, "CPU");
  EXPECT_FALSE(read->measured);
  EXPECT_EQ(read->maxShards, 200);
  EXPECT_EQ(read->card, written.card);
  EXPECT_EQ(read->interval, written.interval);
  EXPECT_EQ(NeuralCompute(*read).interval(), written.interval);
  // Files from before have none.
  file->metadata.erase("interval");
  EXPECT_FALSE(toComputeParameters(*file)->interval.isKnown());
  ASSERT_EQ(read->members.size(), 2u);
  for (size_t m = 0; m < 2; ++m) {
    for (size_t i = 0; i < 3; ++i)
      expectSame(read->members[m].table[i], written.members[m].table[i]);
    for (size_t i = 0; i < 2; ++i)
      expectSame(read->members[m].head[i], written.members[m].head[i]);
  }
}

TEST(NeuralComputeFileTest, WrongParameters) {
  EXPECT_THAT(toString(check(smallModel())), IsEmpty());
  EXPECT_THAT(wrongAfter([](auto &m) { m.features.mean.pop_back(); }),
              HasSubstr("features.mean: expected 64 numbers, got 63"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.features.max[0] = kNaN; }),
              HasSubstr("features.max: expected finite numbers"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.features.std[17] = 0; }),
              HasSubstr("got 0.000000 for 'reuse_known'"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.features.min[0] = 100; }),
              HasSubstr("above features.max for 'reuse_1'"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.members.clear(); }),
              HasSubstr("members: expected 1 to 16, got 0"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.members[1].head[0].in = 9; }),
              HasSubstr("member1.head.0: expected 4 inputs and 1 to 1024 "
                        "outputs, got 9 and 5"));
  EXPECT_THAT(
      wrongAfter([](auto &m) { m.members[0].table[1].bias.pop_back(); }),
      HasSubstr("member0.table.1: its weights or biases"));
  EXPECT_THAT(
      wrongAfter([](auto &m) { m.members[1].table[2].weight[3] = kNaN; }),
      HasSubstr("member1.table.2: expected finite weights"));
  EXPECT_THAT(wrongAfter([](auto &m) {
                std::mt19937 random;
                m.members[1].head[1] = randomLayer(5, 3, random);
              }),
              HasSubstr("member1.head.1: expected 2 outputs, got 3"));
  EXPECT_THAT(wrongAfter([](auto &m) {
                std::mt19937 random;
                for (auto &member : m.members) {
                  member.table[2] = randomLayer(6, 65, random);
                  member.head[0] = randomLayer(65, 5, random);
                }
              }),
              HasSubstr("table.2: expected 2 to 64 outputs, got 65"));
  EXPECT_THAT(wrongAfter([](auto &m) {
                m.members[1] = randomModel({1, 8, 6, 4, 6}).members[0];
              }),
              HasSubstr("member1: expected layers of the same sizes"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.deviceClass = ""; }),
              HasSubstr("device_class: expected"));
  for (PredictionInterval wrong : {PredictionInterval{0, 1}, {2, 1}, {-1, 0}})
    EXPECT_THAT(wrongAfter([&](auto &m) { m.interval = wrong; }),
                HasSubstr("interval: expected 0 < low <= high, both finite"));
  for (const char *text : {"1", "{\"low\": 1}", "{\"low\": 0, \"high\": 0}"})
    EXPECT_THAT(
        errorsAfter([&](TensorFile &f) { f.metadata["interval"] = text; }),
        HasSubstr("interval: expected"));
  EXPECT_THAT(wrongAfter([](auto &m) { m.card = "fine"; }),
              HasSubstr("card: expected a JSON object"));
}

TEST(NeuralComputeFileTest, DamagedFiles) {
  EXPECT_EQ(errorsAfter([](TensorFile &) {}), "no error");
  EXPECT_EQ(errorsAfter([](TensorFile &f) {
              f.metadata["schema"] = "neuroshard.compute_model.v2";
            }),
            "schema: expected 'neuroshard.compute_model.v1', got "
            "'neuroshard.compute_model.v2'");
  EXPECT_THAT(errorsAfter([](TensorFile &f) { f.metadata.clear(); }),
              HasSubstr("no entry 'schema'"));
  EXPECT_THAT(
      errorsAfter([](TensorFile &f) { f.metadata["architecture"] = "x"; }),
      HasSubstr("architecture: expected 'set-mlp', got 'x'"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) {
                std::string &names = f.metadata["feature_names"];
                names.replace(names.find("log_width"), 9, "log_depth");
              }),
              HasSubstr("feature 29 is 'log_width', the model's is "
                        "\"log_depth\"; train it again"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) {
                std::string &names = f.metadata["feature_names"];
                names.insert(names.size() - 1, ",\"more\"");
              }),
              HasSubstr("expected a list of 64 names"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) { f.metadata["measured"] = "no"; }),
              HasSubstr("measured: expected true or false, got 'no'"));
  EXPECT_THAT(
      errorsAfter([](TensorFile &f) { f.metadata["max_shards"] = "2x"; }),
      HasSubstr("max_shards: expected a count, got '2x'"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) {
                f.tensors["features.std"].shape = {4, 16};
              }),
              HasSubstr("features.std: expected F32 [64], got F32 [4, 16]"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) {
                f.tensors.erase("member1.head.0.bias");
              }),
              HasSubstr("member1.head.0.bias: no such tensor"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) {
                f.tensors["extra"] = f.tensors["features.std"];
              }),
              HasSubstr("tensors: expected 24, got 25"));
  EXPECT_THAT(errorsAfter([](TensorFile &f) {
                std::vector<float> bias(8, kNaN);
                f.tensors["member0.table.0.bias"] = makeTensor<float>(bias);
              }),
              HasSubstr("member0.table.0: expected finite weights and biases"));
}

} // namespace
