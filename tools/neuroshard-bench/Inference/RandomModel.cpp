//===- RandomModel.cpp - Compute models with random weights ---------------===//

#include "RandomModel.h"

#include "Bench.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace neuroshard {

namespace {

DenseLayer randomLayer(int64_t in, int64_t out, std::mt19937 &random) {
  float limit = 1 / std::sqrt(static_cast<float>(in));
  std::uniform_real_distribution<float> uniform(-limit, limit);
  DenseLayer layer{in, out, {}, {}};
  std::generate_n(std::back_inserter(layer.weight), in * out,
                  [&] { return uniform(random); });
  std::generate_n(std::back_inserter(layer.bias), out,
                  [&] { return uniform(random); });
  return layer;
}

struct ModelOptions {
  std::string path;
  std::string deviceClass = "CPU";
  int members = 3;
};

Expected<void> writeModel(const ModelOptions &options) {
  Expected<TensorFile> file =
      toTensorFile(randomModel(options.members, options.deviceClass));
  return file ? writeTensorFile(*file, options.path)
              : tl::unexpected(file.error());
}

} // namespace

NeuralComputeParameters randomModel(int members, std::string deviceClass) {
  std::mt19937 random(0);
  NeuralComputeParameters model;
  model.features.mean.assign(kFeatureCount, 0);
  model.features.std.assign(kFeatureCount, 10);
  model.features.min.assign(kFeatureCount, 0);
  model.features.max.assign(kFeatureCount, 20);
  model.deviceClass = std::move(deviceClass);
  model.card = R"({"weights": "random"})";
  for (int i = 0; i < members; ++i)
    model.members.push_back({{randomLayer(kFeatureCount, kTableHidden0, random),
                              randomLayer(kTableHidden0, kTableHidden1, random),
                              randomLayer(kTableHidden1, kSumWidth, random)},
                             {randomLayer(kSumWidth, kHeadHidden, random),
                              randomLayer(kHeadHidden, 2, random)}});
  return model;
}

void addModelCommand(CommandLine &line) {
  auto options = std::make_shared<ModelOptions>();
  Command command = line.addCommand(
      "model", "Writes a compute model with random weights, to try out what a "
               "model of its size costs");
  command.add("file", options->path, "file to write").output("file").required();
  command.add("--device-class", options->deviceClass, "such as H200")
      .deviceClass();
  command.add("--members", options->members, "of the ensemble")
      .range(1, kMaxMembers);
  command.action([options] { return writeModel(*options); });
}

} // namespace neuroshard
