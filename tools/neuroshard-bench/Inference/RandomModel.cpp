//===- RandomModel.cpp - Compute models with random weights ---------------===//

#include "RandomModel.h"

#include "Bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
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

void writeModel(const ModelOptions &options) {
  Expected<TensorFile> file =
      toTensorFile(randomModel(options.members, options.deviceClass));
  Expected<void> written = file ? writeTensorFile(*file, options.path)
                                : tl::unexpected(file.error());
  if (written)
    return;
  std::fprintf(stderr, "neuroshard-bench: %s\n",
               toString(written.error()).c_str());
  throw CLI::RuntimeError(1);
}

} // namespace

NeuralComputeParameters randomModel(int members, std::string deviceClass) {
  std::mt19937 random(0);
  NeuralComputeParameters model;
  model.mean.assign(kFeatureCount, 0);
  model.std.assign(kFeatureCount, 10);
  model.min.assign(kFeatureCount, 0);
  model.max.assign(kFeatureCount, 20);
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

void addModelCommand(CLI::App &app) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App *command = app.add_subcommand(
      "model", "Writes a compute model with random weights, to try out what a "
               "model of its size costs");
  command->add_option("file", options->path, "file to write")->required();
  command->add_option("--device-class", options->deviceClass, "such as CPU");
  command->add_option("--members", options->members, "of the ensemble")
      ->check(CLI::Range(1, kMaxMembers));
  command->callback([options] { writeModel(*options); });
}

} // namespace neuroshard
