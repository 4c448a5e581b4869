//===- CommunicationFileTest.cpp - Files of models and of samples ---------===//

#include "SmallCommunication.h"
#include "TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<float> ofTensor(const TensorFile &file, const std::string &name) {
  return *file.get<float>(name, {-1, -1});
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

TEST(CommunicationFileTest, AModelSurvivesItsFile) {
  TemporaryFolder folder;
  std::string path = folder.file("model.safetensors");
  CommunicationParameters model = randomCommunicationModel();
  model.interval = {0.5, 2};
  ASSERT_TRUE(writeTensorFile(*toTensorFile(model), path));
  Expected<CommunicationParameters> read =
      toCommunicationParameters(*readTensorFile(path));
  ASSERT_TRUE(read) << toString(read.error());
  EXPECT_EQ(read->members.size(), 3u);
  EXPECT_EQ(read->levelCounts, model.levelCounts);
  EXPECT_EQ(read->links, model.links);
  EXPECT_EQ(read->backend, "gloo");
  EXPECT_EQ(read->card, model.card);
  EXPECT_EQ(read->interval, model.interval);
  EXPECT_TRUE(read->measured);

  std::mt19937 random(1);
  Topology topology = *parseTopology("2x3xCPU");
  Traffic traffic = randomTraffic(topology, random);
  EXPECT_EQ(CommunicationModel(*read).timesMs(traffic, {}, Direction::Input),
            CommunicationModel(model).timesMs(traffic, {}, Direction::Input));
}

struct Damage {
  const char *name;
  std::function<void(TensorFile &)> apply;
  const char *where;
  const char *message;
};

class DamagedCommunicationTest : public testing::TestWithParam<Damage> {};

TEST_P(DamagedCommunicationTest, IsRefusedWithOneError) {
  TensorFile file = *toTensorFile(randomCommunicationModel());
  GetParam().apply(file);
  Expected<CommunicationParameters> read = toCommunicationParameters(file);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error(), testing::SizeIs(1));
  EXPECT_THAT(read.error()[0].where, HasSubstr(GetParam().where));
  EXPECT_THAT(read.error()[0].message, HasSubstr(GetParam().message));
}

void setWeight(TensorFile &file, const std::string &name, float value) {
  std::vector<float> weights = ofTensor(file, name);
  weights[5] = value;
  file.tensors[name] = makeTensor<float>(weights, file.tensors[name].shape);
}

void setNumber(TensorFile &file, const std::string &name, float value) {
  std::vector<float> numbers = *file.get<float>(name, {-1});
  numbers[2] = value;
  file.tensors[name] = makeTensor<float>(numbers);
}

const Damage kDamages[] = {
    {"Foreign", [](TensorFile &f) { f.metadata.clear(); }, "", "schema"},
    {"ComputeModel",
     [](TensorFile &f) {
       f.metadata["schema"] = "neuroshard.compute_model.v1";
     },
     "schema", "expected 'neuroshard.communication_model.v1'"},
    {"NextVersion",
     [](TensorFile &f) {
       f.metadata["schema"] = "neuroshard.communication_model.v2";
     },
     "schema", "got 'neuroshard.communication_model.v2'"},
    {"Architecture", [](TensorFile &f) { f.metadata["architecture"] = "mlp"; },
     "architecture", "expected 'device-set', got 'mlp'"},
    {"DeviceFeatures",
     [](TensorFile &f) { f.metadata["device_feature_names"] = "[\"a\"]"; },
     "device_feature_names", "train it again"},
    {"ExchangeFeatures",
     [](TensorFile &f) { f.metadata["exchange_feature_names"] = "{"; },
     "exchange_feature_names", "train it again"},
    {"DeviceClass", [](TensorFile &f) { f.metadata["device_class"] = "TPU"; },
     "device_class", "unknown device class 'TPU'"},
    {"Levels", [](TensorFile &f) { f.metadata["levels"] = "[2, 1]"; }, "levels",
     "ascending"},
    {"LevelsText", [](TensorFile &f) { f.metadata["levels"] = "one"; },
     "levels", "malformed"},
    {"Links",
     [](TensorFile &f) {
       f.metadata["links"] = R"([{"latency_us": 1, "bandwidth_gb_per_s": 0}])";
     },
     "links", "above 0 GB/s"},
    {"Measured", [](TensorFile &f) { f.metadata["measured"] = "yes"; },
     "measured", "got 'yes'"},
    {"Card", [](TensorFile &f) { f.metadata["card"] = "[1]"; }, "card",
     "JSON object"},
    {"NoScale", [](TensorFile &f) { f.tensors.erase("exchange_features.std"); },
     "exchange_features.std", ""},
    {"Std", [](TensorFile &f) { setNumber(f, "device_features.std", 0); },
     "device_features.std", "'out_share_of_max'"},
    {"Range", [](TensorFile &f) { setNumber(f, "device_features.min", 99); },
     "device_features.min", "above"},
    {"NotANumber",
     [](TensorFile &f) {
       setWeight(f, "member1.head.0.weight",
                 std::numeric_limits<float>::quiet_NaN());
     },
     "member1.head.0", "finite"},
    {"Infinity",
     [](TensorFile &f) {
       setWeight(f, "member2.phi.1.weight",
                 std::numeric_limits<float>::infinity());
     },
     "member2.phi.1", "finite"},
    // Overflows in the layers: the prediction was NaN.
    {"HugeWeight",
     [](TensorFile &f) { setWeight(f, "member0.phi.0.weight", -3e38f); },
     "member0.phi.0", "finite weights and biases in [-100, 100]"},
    {"TinyStd",
     [](TensorFile &f) { setNumber(f, "device_features.std", 1e-40f); },
     "device_features.std", "at least 1e-9"},
    {"NoBias", [](TensorFile &f) { f.tensors.erase("member0.phi.1.bias"); },
     "member0.phi.1.bias", ""},
    {"OtherTensor",
     [](TensorFile &f) { f.tensors["x"] = f.tensors["member0.phi.1.bias"]; },
     "tensors", "expected 38"},
    {"Shape",
     [](TensorFile &f) {
       f.tensors["member0.head.1.weight"].shape = {32, 128};
     },
     "member0.head.1", ""},
};

INSTANTIATE_TEST_SUITE_P(All, DamagedCommunicationTest,
                         testing::ValuesIn(kDamages),
                         [](const testing::TestParamInfo<Damage> &info) {
                           return info.param.name;
                         });

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// Two exchanges and a repeat of the first.
CommunicationSamples threeSamples() {
  CommunicationSamples samples;
  samples.metadata = {{"device_class", "CPU"}, {"backend", "gloo"}};
  samples.topologies = {*parseTopology("2xCPU"), *parseTopology("2x2xCPU")};
  samples.links = {{150, 2.5}, {300, 1.5}};
  CommunicationSample first;
  first.direction = Direction::Backward;
  first.batch = 64;
  first.dims = {8, 24};
  first.bytesOut = {4096, 4096};
  first.bytesIn = {2048, 6144};
  first.skewsMs = {0, 1.5};
  first.timesMs = {1.9, 0.25};
  first.referenceBeforeMs = first.referenceAfterMs = 1;
  CommunicationSample second = first;
  second.topology = 1;
  second.heldOut = true;
  second.dims = second.skewsMs = {0, 0, 0, 0};
  second.bytesOut = second.bytesIn = {10, 20, 30, 40};
  second.timesMs = {1, 2, 3, 4};
  CommunicationSample again = first;
  again.repeatOf = 0;
  samples.samples = {first, second, again};
  return samples;
}

class CommunicationSamplesTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(writeCommunicationSamples(threeSamples(), path));
    file = *readTensorFile(path);
  }
  Expected<CommunicationSamples> readChanged() {
    EXPECT_TRUE(writeTensorFile(file, path));
    return readCommunicationSamples(path);
  }
  std::string errorOfChanged() {
    Expected<CommunicationSamples> samples = readChanged();
    return samples ? "no error" : toString(samples.error());
  }

  TemporaryFolder folder;
  std::string path = folder.file("samples.safetensors");
  TensorFile file;
};

TEST_F(CommunicationSamplesTest, RoundTrip) {
  Expected<CommunicationSamples> read = readCommunicationSamples(path);
  ASSERT_TRUE(read) << toString(read.error());
  CommunicationSamples expected = threeSamples();
  EXPECT_EQ(read->links, expected.links);
  EXPECT_EQ(read->metadata.at("backend"), "gloo");
  ASSERT_EQ(read->samples.size(), 3u);
  const CommunicationSample &second = read->samples[1];
  EXPECT_TRUE(second.heldOut);
  EXPECT_EQ(second.timesMs, expected.samples[1].timesMs);
  EXPECT_EQ(read->samples[2].repeatOf, 0);
  EXPECT_EQ(read->samples[0].direction, Direction::Backward);
  Traffic traffic = read->trafficOf(second);
  EXPECT_EQ(traffic.topology->deviceCount(), 4);
  EXPECT_EQ(traffic.bytesIn, expected.samples[1].bytesIn);
}

TEST_F(CommunicationSamplesTest, TopologiesHaveTheFittedLinks) {
  CommunicationSamples read = *readCommunicationSamples(path);
  const Topology &topology = read.topologies[1];
  EXPECT_EQ(topology.levels[0].groupSizes, std::vector<int>{4});
  EXPECT_EQ(topology.levels[0].latencyUs, 300);
  EXPECT_EQ(topology.levels[1].groupSizes, (std::vector<int>{2, 2}));
  EXPECT_EQ(topology.levels[1].bandwidthGBps, 2.5);
  EXPECT_EQ(topology.devices[3].host, 1);
}

TEST_F(CommunicationSamplesTest, RejectedSamplesAreLeftOut) {
  std::vector<uint8_t> rejected = {1, 0, 0};
  file.tensors["sample.rejected"] = makeTensor<uint8_t>(rejected);
  Expected<CommunicationSamples> read = readChanged();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rejected, 1);
  ASSERT_EQ(read->samples.size(), 2u);
  EXPECT_EQ(read->samples[1].repeatOf, -1) << "what it repeats is gone";
}

TEST_F(CommunicationSamplesTest, DamagedFilesAreRefused) {
  TensorFile whole = file;
  auto errorOf = [&](const std::function<void()> &damage) {
    file = whole;
    damage();
    return errorOfChanged();
  };
  EXPECT_THAT(errorOf([&] { file.metadata["schema"] = "other"; }),
              HasSubstr("expected 'neuroshard.communication_samples.v1', got "
                        "'other'"));
  EXPECT_THAT(errorOf([&] { file.metadata["links"] = "[]"; }),
              HasSubstr("too few exchanges"));
  EXPECT_THAT(errorOf([&] { file.metadata["topologies"] = "[{}]"; }),
              HasSubstr("malformed"));
  EXPECT_THAT(errorOf([&] { file.metadata["device_class"] = "TPU"; }),
              HasSubstr("unknown device class 'TPU'"));
  EXPECT_THAT(errorOf([&] { file.tensors.erase("device.times_ms"); }),
              HasSubstr("device.times_ms"));
  EXPECT_THAT(errorOf([&] {
                std::vector<double> times(8, -1.0);
                file.tensors["device.times_ms"] = makeTensor<double>(times);
              }),
              HasSubstr("finite numbers of at least 0"));
  EXPECT_THAT(errorOf([&] {
                std::vector<int64_t> topologies = {0, 0, 0};
                file.tensors["sample.topology"] =
                    makeTensor<int64_t>(topologies);
              }),
              HasSubstr("not those of its topology"));
  EXPECT_THAT(errorOf([&] {
                std::vector<int64_t> first = {0, 2, 1, 8};
                file.tensors["sample.first_device"] =
                    makeTensor<int64_t>(first);
              }),
              HasSubstr("ascending"));
  EXPECT_THAT(toString(readCommunicationSamples(folder.file("none")).error()),
              HasSubstr("none"));
}

} // namespace
