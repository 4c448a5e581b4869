//===- PlacementPolicyFile.cpp - Files of placement policies --------------===//

#include "neuroshard/CostModel/PlacementPolicy.h"

#include "Layers/CheckLayer.h"
#include "neuroshard/CostModel/ModelLibrary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace neuroshard;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *kShippedFile = "placement_policy.safetensors";
constexpr const char *kArchitecture = "dreamshard-mlp";
constexpr size_t kTensors = 2 * 4 + 2 * (2 + 3);

/// Calls visit(name, layer) for every layer.
template <typename Parameters, typename Visit>
void forEachLayer(Parameters &parameters, Visit visit) {
  for (size_t i = 0; i < parameters.table.size(); ++i)
    visit(std::string("table.").append(std::to_string(i)), parameters.table[i]);
  for (size_t i = 0; i < parameters.head.size(); ++i)
    visit(std::string("head.").append(std::to_string(i)), parameters.head[i]);
}

/// Calls visit(name, numbers, count) for every part of the scales.
template <typename Parameters, typename Visit>
void forEachScale(Parameters &parameters, Visit visit) {
  auto each = [&](std::string prefix, auto &scale, int64_t count) {
    visit(prefix + ".mean", scale.mean, count);
    visit(prefix + ".std", scale.std, count);
    visit(prefix + ".min", scale.min, count);
    visit(prefix + ".max", scale.max, count);
  };
  each("table_features", parameters.tableScale, kFeatureCount);
  each("device_features", parameters.deviceScale, kPlacementFeatureCount);
}

json namesOf(std::span<const std::string_view> names) {
  json list = json::array();
  for (std::string_view name : names)
    list.push_back(name);
  return list;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

class Checker {
public:
  Diagnostics run(const PlacementPolicyParameters &parameters);

private:
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }
  void checkScale(const std::string &name, const FeatureScale &scale);
  void checkLayer(const std::string &name, const DenseLayer &layer, int64_t in);

  Diagnostics errors;
};

void Checker::checkScale(const std::string &name, const FeatureScale &scale) {
  for (size_t i = 0; i < scale.std.size(); ++i) {
    if (!(scale.std[i] > 0))
      return error(name + ".std", "expected positive numbers, got " +
                                      std::to_string(scale.std[i]));
    if (scale.min[i] > scale.max[i])
      return error(name + ".min",
                   "it is above the maximum for feature " + std::to_string(i));
  }
}

void Checker::checkLayer(const std::string &name, const DenseLayer &layer,
                         int64_t in) {
  if (std::string fault = faultOf(layer, in); !fault.empty())
    error(name, fault);
}

Diagnostics Checker::run(const PlacementPolicyParameters &parameters) {
  forEachScale(parameters, [&](const std::string &name,
                               const std::vector<float> &numbers,
                               int64_t count) {
    if (static_cast<int64_t>(numbers.size()) != count)
      error(name, "expected " + std::to_string(count) + " numbers, got " +
                      std::to_string(numbers.size()));
    else if (!allFinite(numbers))
      error(name, "expected finite numbers");
  });
  if (!errors.empty())
    return std::move(errors);
  checkScale("table_features", parameters.tableScale);
  checkScale("device_features", parameters.deviceScale);
  int64_t in = kFeatureCount;
  forEachLayer(parameters,
               [&](const std::string &name, const DenseLayer &layer) {
                 if (&layer == &parameters.head[0])
                   in = 3 * in + kPlacementFeatureCount;
                 checkLayer(name, layer, in);
                 in = layer.out;
               });
  if (parameters.head.back().out != 1)
    error("head.2", "expected 1 output, got " +
                        std::to_string(parameters.head.back().out));
  if (!json::parse(parameters.card, nullptr, false).is_object())
    error("card", "expected a JSON object");
  return std::move(errors);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class PolicyFileReader {
public:
  explicit PolicyFileReader(const TensorFile &file) : file(file) {}
  Expected<PlacementPolicyParameters> read();

private:
  std::string text(const char *key) {
    Expected<std::string> value = file.getMetadata(key);
    if (value)
      return *value;
    errors.push_back(value.error().front());
    return {};
  }
  void expect(const char *key, std::string_view wanted) {
    if (!errors.empty())
      return;
    std::string found = text(key);
    if (errors.empty() && found != wanted)
      errors.push_back(
          {key, "expected '" + std::string(wanted) + "', got '" + found + "'"});
  }
  void expectNames(const char *key, std::span<const std::string_view> wanted) {
    if (!errors.empty())
      return;
    json found = json::parse(text(key), nullptr, false);
    if (errors.empty() && found != namesOf(wanted))
      errors.push_back({key, "the policy was trained on other features; train "
                             "it again with neuroshard-train placement"});
  }
  std::vector<float> numbers(const std::string &name,
                             std::vector<int64_t> shape);
  DenseLayer layer(const std::string &name);

  const TensorFile &file;
  Diagnostics errors;
};

std::vector<float> PolicyFileReader::numbers(const std::string &name,
                                             std::vector<int64_t> shape) {
  if (!errors.empty())
    return {};
  Expected<std::vector<float>> values = file.get<float>(name, shape);
  if (values)
    return std::move(*values);
  errors.push_back(values.error().front());
  return {};
}

DenseLayer PolicyFileReader::layer(const std::string &name) {
  DenseLayer layer;
  layer.weight = numbers(name + ".weight", {-1, -1});
  if (!errors.empty())
    return layer;
  const std::vector<int64_t> &shape = file.tensors.at(name + ".weight").shape;
  layer.out = shape[0];
  layer.in = shape[1];
  layer.bias = numbers(name + ".bias", {layer.out});
  return layer;
}

Expected<PlacementPolicyParameters> PolicyFileReader::read() {
  expect("schema", kPlacementPolicySchema);
  expect("architecture", kArchitecture);
  expectNames("table_feature_names", featureNames());
  expectNames("device_feature_names", placementFeatureNames());
  PlacementPolicyParameters parameters;
  if (errors.empty())
    parameters.card = text("card");
  forEachScale(parameters,
               [&](const std::string &name, std::vector<float> &values,
                   int64_t count) { values = numbers(name, {count}); });
  forEachLayer(parameters, [&](const std::string &name, DenseLayer &into) {
    into = layer(name);
  });
  if (errors.empty() && file.tensors.size() != kTensors)
    errors.push_back({"tensors", "expected " + std::to_string(kTensors) +
                                     ", got " +
                                     std::to_string(file.tensors.size())});
  if (errors.empty())
    errors = check(parameters);
  if (!errors.empty())
    return tl::unexpected(errors);
  return parameters;
}

} // namespace

Diagnostics neuroshard::check(const PlacementPolicyParameters &parameters) {
  return Checker().run(parameters);
}

Expected<PlacementPolicyParameters>
neuroshard::toPlacementPolicyParameters(const TensorFile &file) {
  return PolicyFileReader(file).read();
}

Expected<TensorFile>
neuroshard::toTensorFile(const PlacementPolicyParameters &parameters) {
  if (Diagnostics errors = check(parameters); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  file.metadata = {
      {"schema", std::string(kPlacementPolicySchema)},
      {"architecture", kArchitecture},
      {"table_feature_names", namesOf(featureNames()).dump()},
      {"device_feature_names", namesOf(placementFeatureNames()).dump()},
      {"card", parameters.card}};
  forEachScale(parameters, [&](const std::string &name,
                               const std::vector<float> &values, int64_t) {
    file.tensors[name] = makeTensor<float>(values);
  });
  forEachLayer(parameters,
               [&](const std::string &name, const DenseLayer &layer) {
                 file.tensors[name + ".weight"] =
                     makeTensor<float>(layer.weight, {layer.out, layer.in});
                 file.tensors[name + ".bias"] = makeTensor<float>(layer.bias);
               });
  return file;
}

Expected<std::unique_ptr<PlacementPolicy>>
neuroshard::readPlacementPolicy(const std::string &path) {
  std::string from =
      path.empty() ? (fs::path(modelsFolder()) / kShippedFile).string() : path;
  Expected<TensorFile> file = readTensorFile(from);
  if (!file)
    return tl::unexpected(file.error());
  Expected<PlacementPolicyParameters> parameters =
      toPlacementPolicyParameters(*file);
  if (!parameters) {
    for (Diagnostic &error : parameters.error())
      error.where = from + ": " + error.where;
    return tl::unexpected(parameters.error());
  }
  return makePlacementPolicy(*parameters, fs::path(from).stem().string());
}
