//===- NeuralComputeFile.cpp - Files of compute models --------------------===//

#include "neuroshard/CostModel/NeuralCompute.h"

#include "Layers/CheckLayer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace neuroshard;
using nlohmann::json;

namespace {

constexpr const char *kArchitecture = "set-mlp";

std::string layerName(size_t member, const char *part, size_t layer) {
  return "member" + std::to_string(member) + "." + part + "." +
         std::to_string(layer);
}

/// Calls visit(name, layer) for every layer of a member.
template <typename Member, typename Visit>
void forEachLayer(size_t index, Member &member, Visit visit) {
  for (size_t i = 0; i < member.table.size(); ++i)
    visit(layerName(index, "table", i), member.table[i]);
  for (size_t i = 0; i < member.head.size(); ++i)
    visit(layerName(index, "head", i), member.head[i]);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

class Checker {
public:
  explicit Checker(const NeuralComputeParameters &parameters)
      : parameters(parameters) {}

  Diagnostics run() {
    checkFeatures();
    checkMembers();
    if (parameters.deviceClass.empty())
      error("device_class", "expected the name of a device class");
    if (parameters.maxShards < 0)
      error("max_shards", "expected a number of at least 0");
    if (!json::parse(parameters.card, nullptr, false).is_object())
      error("card", "expected a JSON object");
    return std::move(errors);
  }

private:
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }
  void checkFeatures();
  void checkMembers();
  void checkLayer(const std::string &name, const DenseLayer &layer, int64_t in);
  void expectWidth(const std::string &name, const DenseLayer &layer,
                   int64_t least, int64_t most);
  void checkChain(size_t index, const NeuralComputeMember &member);

  const NeuralComputeParameters &parameters;
  Diagnostics errors;
};

void Checker::checkFeatures() {
  const auto &[mean, std, min, max] =
      std::tie(parameters.mean, parameters.std, parameters.min, parameters.max);
  for (auto [name, values] :
       {std::pair("features.mean", &mean), std::pair("features.std", &std),
        std::pair("features.min", &min), std::pair("features.max", &max)}) {
    if (values->size() != kFeatureCount)
      return error(name, "expected " + std::to_string(kFeatureCount) +
                             " numbers, got " + std::to_string(values->size()));
    if (!allFinite(*values))
      return error(name, "expected finite numbers");
  }
  for (size_t i = 0; i < kFeatureCount; ++i) {
    if (!(std[i] > 0))
      error("features.std", "expected positive numbers, got " +
                                std::to_string(std[i]) + " for '" +
                                std::string(featureNames()[i]) + "'");
    if (min[i] > max[i])
      error("features.min", "it is above features.max for '" +
                                std::string(featureNames()[i]) + "'");
  }
}

void Checker::checkLayer(const std::string &name, const DenseLayer &layer,
                         int64_t in) {
  if (std::string fault = faultOf(layer, in); !fault.empty())
    error(name, fault);
}

void Checker::expectWidth(const std::string &name, const DenseLayer &layer,
                          int64_t least, int64_t most) {
  if (layer.out < least || layer.out > most)
    error(name, "expected " + std::to_string(least) + " to " +
                    std::to_string(most) + " outputs, got " +
                    std::to_string(layer.out));
}

void Checker::checkChain(size_t index, const NeuralComputeMember &member) {
  int64_t in = kFeatureCount;
  forEachLayer(index, member,
               [&](const std::string &name, const DenseLayer &layer) {
                 checkLayer(name, layer, in);
                 in = layer.out;
               });
  // The head reads K sums and gives two numbers, which correct two of them.
  if (in != 2)
    error(layerName(index, "head", 1),
          "expected 2 outputs, got " + std::to_string(in));
  expectWidth(layerName(index, "table", 2), member.table.back(), 2,
              kMaxSumWidth);
  expectWidth(layerName(index, "head", 0), member.head.front(), 1,
              kMaxHeadHidden);
}

void Checker::checkMembers() {
  const auto &members = parameters.members;
  if (members.empty() || members.size() > kMaxMembers)
    return error("members", "expected 1 to " + std::to_string(kMaxMembers) +
                                ", got " + std::to_string(members.size()));
  for (size_t i = 0; i < members.size(); ++i)
    checkChain(i, members[i]);
  if (!errors.empty())
    return;
  auto widths = [](const NeuralComputeMember &member) {
    std::vector<int64_t> widths;
    forEachLayer(0, member, [&](const std::string &, const DenseLayer &layer) {
      widths.push_back(layer.out);
    });
    return widths;
  };
  for (size_t i = 1; i < members.size(); ++i)
    if (widths(members[i]) != widths(members[0]))
      error("member" + std::to_string(i),
            "expected layers of the same sizes as member0");
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class ComputeFileReader {
public:
  explicit ComputeFileReader(const TensorFile &file) : file(file) {}

  Expected<NeuralComputeParameters> read();

private:
  std::string text(const char *key) {
    Expected<std::string> value = file.getMetadata(key);
    if (value)
      return *value;
    errors.push_back(value.error().front());
    return {};
  }
  void expect(const char *key, std::string_view wanted) {
    std::string found = text(key);
    if (errors.empty() && found != wanted)
      errors.push_back(
          {key, "expected '" + std::string(wanted) + "', got '" + found + "'"});
  }
  std::vector<float> numbers(const std::string &name,
                             std::vector<int64_t> shape) {
    Expected<std::vector<float>> values = file.get<float>(name, shape);
    if (values)
      return std::move(*values);
    errors.push_back(values.error().front());
    return {};
  }
  void checkFeatureNames();
  void readMetadata();
  DenseLayer readLayer(const std::string &name);
  void readMembers();
  void checkNothingElse();

  const TensorFile &file;
  Diagnostics errors;
  NeuralComputeParameters result;
};

/// The first name that differs is the one to show: lists are long.
void ComputeFileReader::checkFeatureNames() {
  json names = json::parse(text("feature_names"), nullptr, false);
  if (!errors.empty())
    return;
  std::span<const std::string_view> wanted = featureNames();
  for (size_t i = 0; names.is_array() && i < wanted.size(); ++i) {
    json found = i < names.size() ? names[i] : json();
    if (found != json(wanted[i])) {
      errors.push_back({"feature_names",
                        "the model was trained on other features; feature " +
                            std::to_string(i) + " is '" +
                            std::string(wanted[i]) + "', the model's is " +
                            found.dump() + "; train it again"});
      return;
    }
  }
  if (!names.is_array() || names.size() != wanted.size())
    errors.push_back({"feature_names", "expected a list of " +
                                           std::to_string(wanted.size()) +
                                           " names; train the model again"});
}

void ComputeFileReader::readMetadata() {
  result.deviceClass = text("device_class");
  result.card = text("card");
  std::string measured = text("measured");
  if (measured != "true" && measured != "false")
    errors.push_back(
        {"measured", "expected true or false, got '" + measured + "'"});
  result.measured = measured == "true";
  std::string shards = text("max_shards");
  auto [end, error] = std::from_chars(
      shards.data(), shards.data() + shards.size(), result.maxShards);
  if (error != std::errc() || end != shards.data() + shards.size())
    errors.push_back({"max_shards", "expected a count, got '" + shards + "'"});
}

DenseLayer ComputeFileReader::readLayer(const std::string &name) {
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

void ComputeFileReader::readMembers() {
  for (size_t i = 0; i < kMaxMembers && errors.empty(); ++i) {
    if (i > 0 && !file.tensors.contains(layerName(i, "table", 0) + ".weight"))
      break;
    NeuralComputeMember &member = result.members.emplace_back();
    forEachLayer(i, member, [&](const std::string &name, DenseLayer &layer) {
      if (errors.empty())
        layer = readLayer(name);
    });
  }
}

/// A tensor that nobody reads is a sign of another kind of file.
void ComputeFileReader::checkNothingElse() {
  size_t known = 4 + result.members.size() * 10;
  if (file.tensors.size() != known)
    errors.push_back({"tensors", "expected " + std::to_string(known) + " for " +
                                     std::to_string(result.members.size()) +
                                     " members, got " +
                                     std::to_string(file.tensors.size())});
}

Expected<NeuralComputeParameters> ComputeFileReader::read() {
  expect("schema", kComputeModelSchema);
  if (errors.empty())
    expect("architecture", kArchitecture);
  if (errors.empty())
    checkFeatureNames();
  if (errors.empty())
    readMetadata();
  if (errors.empty()) {
    result.mean = numbers("features.mean", {kFeatureCount});
    result.std = numbers("features.std", {kFeatureCount});
    result.min = numbers("features.min", {kFeatureCount});
    result.max = numbers("features.max", {kFeatureCount});
  }
  if (errors.empty())
    readMembers();
  if (errors.empty())
    checkNothingElse();
  if (errors.empty())
    errors = check(result);
  if (!errors.empty())
    return tl::unexpected(errors);
  return std::move(result);
}

} // namespace

Diagnostics neuroshard::check(const NeuralComputeParameters &parameters) {
  return Checker(parameters).run();
}

Expected<NeuralComputeParameters>
neuroshard::toComputeParameters(const TensorFile &file) {
  return ComputeFileReader(file).read();
}

Expected<TensorFile>
neuroshard::toTensorFile(const NeuralComputeParameters &parameters) {
  if (Diagnostics errors = check(parameters); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  json names = json::array();
  for (std::string_view name : featureNames())
    names.push_back(name);
  file.metadata = {{"schema", std::string(kComputeModelSchema)},
                   {"architecture", kArchitecture},
                   {"feature_names", names.dump()},
                   {"device_class", parameters.deviceClass},
                   {"measured", parameters.measured ? "true" : "false"},
                   {"max_shards", std::to_string(parameters.maxShards)},
                   {"card", parameters.card}};
  file.tensors["features.mean"] = makeTensor<float>(parameters.mean);
  file.tensors["features.std"] = makeTensor<float>(parameters.std);
  file.tensors["features.min"] = makeTensor<float>(parameters.min);
  file.tensors["features.max"] = makeTensor<float>(parameters.max);
  for (size_t i = 0; i < parameters.members.size(); ++i)
    forEachLayer(i, parameters.members[i],
                 [&](const std::string &name, const DenseLayer &layer) {
                   file.tensors[name + ".weight"] =
                       makeTensor<float>(layer.weight, {layer.out, layer.in});
                   file.tensors[name + ".bias"] = makeTensor<float>(layer.bias);
                 });
  return file;
}
