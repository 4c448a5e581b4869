//===- ModelLibraryTest.cpp - Models chosen by name -----------------------===//

#include "neuroshard/CostModel/ModelLibrary.h"
#include "SmallModel.h"
#include "TemporaryFolder.h"
#include "neuroshard/CostModel/Registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

/// A models folder of the test's own.
class ModelLibraryTest : public testing::Test {
protected:
  ModelLibraryTest() { use(folder.path()); }
  ~ModelLibraryTest() override { unsetenv("NEUROSHARD_MODELS"); }

  static void use(const std::string &path) {
    setenv("NEUROSHARD_MODELS", path.c_str(), 1);
  }

  std::string write(const std::string &name, const std::string &deviceClass,
                    bool measured = true) {
    NeuralComputeParameters model = randomModel({1, 8, 6, 4, 5});
    model.deviceClass = deviceClass;
    model.measured = measured;
    std::string path = folder.file(name + ".safetensors");
    EXPECT_TRUE(writeTensorFile(*toTensorFile(model), path));
    return path;
  }

  static std::string nameOf(std::string_view name,
                            const std::string &topology = "2xCPU") {
    auto model = makeCostModel(name, *parseTopology(topology));
    return model ? (*model)->name() : "error: " + toString(model.error());
  }

  TemporaryFolder folder;
};

TEST_F(ModelLibraryTest, ClosedFormsByName) {
  EXPECT_EQ(nameOf("roofline"), "roofline");
  EXPECT_EQ(nameOf("reference"), "reference");
  // Other tests may have registered models, which are listed between.
  EXPECT_THAT(nameOf("oracle"),
              AllOf(StartsWith("error: cost_model: expected auto, roofline, "
                               "reference, .safetensors files separated by "
                               "commas or a machine file (.json), "),
                    EndsWith("got: 'oracle'")));
  EXPECT_THAT(nameOf(""), HasSubstr("got: ''"));
  EXPECT_THAT(nameOf("a.safetensors,"), HasSubstr("got: 'a.safetensors,'"));
}

TEST_F(ModelLibraryTest, AutoTakesTheModelsOfTheTopology) {
  EXPECT_EQ(nameOf("auto"), "roofline");
  write("cpu_compute", "CPU");
  write("h200_compute", "H200");
  EXPECT_EQ(nameOf("auto"), "cpu_compute+roofline");
  EXPECT_EQ(nameOf("auto", "8xH200"), "h200_compute+roofline");
  EXPECT_EQ(nameOf("auto", "8xA100-40GB"), "roofline");
  Topology mixed = *parseTopology("2xCPU");
  mixed.devices[1].deviceClass = "H200";
  EXPECT_EQ((*makeCostModel("auto", mixed))->name(),
            "cpu_compute+h200_compute+roofline");
}

TEST_F(ModelLibraryTest, AutoNeverTakesASimulatedModel) {
  std::string path = write("cpu_simulated", "CPU", /*measured=*/false);
  EXPECT_EQ(nameOf("auto"), "roofline");
  EXPECT_EQ(nameOf(path), "cpu_simulated+roofline");
}

TEST_F(ModelLibraryTest, TwoModelsForOneClass) {
  std::string a = write("a", "CPU"), b = write("b", "CPU");
  const char *expected = "error: cost_model: two compute models for device "
                         "class CPU, 'a' and 'b'; remove one, or name the "
                         "files to use";
  EXPECT_EQ(nameOf("auto"), expected);
  EXPECT_EQ(nameOf(a + "," + b), expected);
  EXPECT_EQ(nameOf(b), "b+roofline");
}

TEST_F(ModelLibraryTest, FilesByPath) {
  std::string cpu = write("cpu", "CPU"), gpu = write("gpu", "H200");
  EXPECT_EQ(nameOf(gpu), "error: cost_model: model 'gpu' is for device class "
                         "H200, of which the topology has no device");
  EXPECT_THAT(nameOf(cpu + "," + gpu), HasSubstr("'gpu' is for device class"));
  EXPECT_THAT(nameOf(folder.file("none.safetensors")),
              HasSubstr("cannot open"));
}

TEST_F(ModelLibraryTest, DamagedAndForeignFiles) {
  std::string path = write("cpu", "CPU");
  std::string bytes = slurp(path);
  spill(path, bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(nameOf(path), HasSubstr("not a sound safetensors file"));
  EXPECT_THAT(nameOf("auto"), HasSubstr(path));
  TensorFile foreign;
  ASSERT_TRUE(writeTensorFile(foreign, path));
  EXPECT_EQ(nameOf(path), "error: " + path +
                              ": not a cost model: expected the schema "
                              "'neuroshard.compute_model.v1' or "
                              "'neuroshard.communication_model.v1', got ''");
  Expected<TensorFile> damaged = toTensorFile(randomModel({1, 8, 6, 4, 5}));
  damaged->metadata["architecture"] = "other";
  ASSERT_TRUE(writeTensorFile(*damaged, path));
  EXPECT_EQ(nameOf(path), "error: " + path +
                              ": architecture: expected 'set-mlp', got "
                              "'other'");
}

TEST_F(ModelLibraryTest, OtherFilesInTheFolderAreLeftAlone) {
  write("cpu", "CPU");
  spill(folder.file("README.md"), "text");
  std::filesystem::create_directory(folder.file("data"));
  spill(folder.file("data/cpu.safetensors"), "no model");
  EXPECT_EQ(nameOf("auto"), "cpu+roofline");
}

TEST_F(ModelLibraryTest, AFolderThatIsNotThere) {
  use(folder.file("none"));
  EXPECT_THAT(nameOf("auto"),
              HasSubstr("error: NEUROSHARD_MODELS: cannot read the folder"));
  unsetenv("NEUROSHARD_MODELS");
  EXPECT_THAT(modelsFolder(), testing::EndsWith("/share/neuroshard/models"));
  EXPECT_THAT(readModelsFolder(folder.file("none"))->compute, IsEmpty());
}

} // namespace
