//===- ModelFile.cpp - Parts of trained model files -----------------------===//

#include "ModelFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using namespace neuroshard;
using nlohmann::json;

namespace {

/// Calls visit(column, numbers) for the columns of a scale.
template <typename Scale, typename Visit>
void forEachColumn(Scale &scale, Visit visit) {
  visit("mean", scale.mean);
  visit("std", scale.std);
  visit("min", scale.min);
  visit("max", scale.max);
}

/// Limits of the numbers in a file, far above those of trained models: five
/// layers of at most kMaxLayerWidth inputs and outputs stay finite within them,
/// so that no prediction is NaN.
constexpr float kMaxFeature = 1000, kLeastStd = 1e-9f, kMaxWeight = 100;

/// False for NaN, too.
bool allWithin(const std::vector<float> &values, float limit) {
  return std::all_of(values.begin(), values.end(),
                     [&](float value) { return std::abs(value) <= limit; });
}

std::string finiteUpTo(const char *what, float limit) {
  return std::string("expected finite ") + what + " in [-" +
         std::to_string(static_cast<int>(limit)) + ", " +
         std::to_string(static_cast<int>(limit)) + "]";
}

} // namespace

std::string neuroshard::layerName(size_t member, const char *part,
                                  size_t layer) {
  return "member" + std::to_string(member) + "." + part + "." +
         std::to_string(layer);
}

std::string neuroshard::inQuotes(std::string_view text) {
  std::string result = "'";
  result += text;
  result += '\'';
  return result;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void neuroshard::checkScale(const std::string &name, const FeatureScale &scale,
                            std::span<const std::string_view> features,
                            Diagnostics &errors) {
  size_t before = errors.size();
  forEachColumn(
      scale, [&](const char *column, const std::vector<float> &values) {
        std::string where = name + "." + column;
        if (values.size() != features.size())
          errors.push_back(
              {where, "expected " + std::to_string(features.size()) +
                          " numbers, got " + std::to_string(values.size())});
        else if (!allWithin(values, kMaxFeature))
          errors.push_back({where, finiteUpTo("numbers", kMaxFeature)});
      });
  if (errors.size() != before)
    return;
  for (size_t i = 0; i < features.size(); ++i) {
    if (!(scale.std[i] >= kLeastStd))
      errors.push_back(
          {name + ".std", "expected positive numbers of at least 1e-9, got " +
                              std::to_string(scale.std[i]) + " for " +
                              inQuotes(features[i])});
    if (scale.min[i] > scale.max[i])
      errors.push_back({name + ".min", "it is above " + name + ".max for " +
                                           inQuotes(features[i])});
  }
}

void neuroshard::checkLayer(const std::string &name, const DenseLayer &layer,
                            int64_t in, Diagnostics &errors) {
  if (layer.in != in || layer.out < 1 || layer.out > kMaxLayerWidth)
    errors.push_back({name, "expected " + std::to_string(in) +
                                " inputs and 1 to " +
                                std::to_string(kMaxLayerWidth) +
                                " outputs, got " + std::to_string(layer.in) +
                                " and " + std::to_string(layer.out)});
  else if (layer.weight.size() != static_cast<size_t>(layer.in * layer.out) ||
           layer.bias.size() != static_cast<size_t>(layer.out))
    errors.push_back({name, "its weights or biases do not match its "
                            "inputs and outputs"});
  else if (!allWithin(layer.weight, kMaxWeight) ||
           !allWithin(layer.bias, kMaxWeight))
    errors.push_back({name, finiteUpTo("weights and biases", kMaxWeight)});
}

void neuroshard::checkCard(const std::string &card, Diagnostics &errors) {
  if (!json::parse(card, nullptr, false).is_object())
    errors.push_back({"card", "expected a JSON object"});
}

void neuroshard::checkInterval(const PredictionInterval &interval,
                               Diagnostics &errors) {
  if (interval == PredictionInterval{})
    return;
  if (!(interval.low > 0 && interval.low <= interval.high &&
        std::isfinite(interval.high)))
    errors.push_back({"interval", "expected 0 < low <= high, both finite"});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void ModelFileReader::error(std::string where, std::string message) {
  if (ok())
    errors.push_back({std::move(where), std::move(message)});
}

std::string ModelFileReader::text(const char *key) {
  if (!ok())
    return {};
  Expected<std::string> value = file.getMetadata(key);
  if (value)
    return *std::move(value);
  errors.push_back(value.error().front());
  return {};
}

bool ModelFileReader::flag(const char *key) {
  std::string found = text(key);
  if (found != "true" && found != "false")
    error(key, "expected true or false, got " + inQuotes(found));
  return found == "true";
}

void ModelFileReader::expect(const char *key, std::string_view wanted) {
  std::string found = text(key);
  if (found != wanted)
    error(key, "expected " + inQuotes(wanted) + ", got " + inQuotes(found));
}

void ModelFileReader::expectNames(const char *key,
                                  std::span<const std::string_view> wanted) {
  json names = json::parse(text(key), nullptr, false);
  // Lists are long: the first name that differs is enough.
  for (size_t i = 0; names.is_array() && i < wanted.size(); ++i) {
    json found = i < names.size() ? names[i] : json();
    if (found != json(wanted[i]))
      return error(key, "the model was trained on other features; feature " +
                            std::to_string(i) + " is " + inQuotes(wanted[i]) +
                            ", the model's is " + found.dump() +
                            "; train it again");
  }
  if (!names.is_array() || names.size() != wanted.size())
    error(key, "expected a list of " + std::to_string(wanted.size()) +
                   " names; train it again");
}

PredictionInterval ModelFileReader::interval() {
  PredictionInterval found;
  auto entry = file.metadata.find("interval");
  if (!ok() || entry == file.metadata.end())
    return found;
  json value = json::parse(entry->second, nullptr, false);
  auto readBound = [&](const char *key, double &out) {
    if (value.is_object() && value.contains(key) && value[key].is_number())
      out = value[key].get<double>();
    else
      error("interval", std::string("expected an object with the number ") +
                            key + ", got " + inQuotes(entry->second));
  };
  readBound("low", found.low);
  readBound("high", found.high);
  if (ok() && found == PredictionInterval{})
    error("interval", "expected 0 < low <= high, both finite");
  return found;
}

std::vector<float> ModelFileReader::numbers(const std::string &name,
                                            const std::vector<int64_t> &shape) {
  if (!ok())
    return {};
  Expected<std::vector<float>> values = file.get<float>(name, shape);
  if (values)
    return *std::move(values);
  errors.push_back(values.error().front());
  return {};
}

FeatureScale ModelFileReader::scale(const std::string &name, int64_t features) {
  FeatureScale scale;
  forEachColumn(scale, [&](const char *column, std::vector<float> &values) {
    values = numbers(name + "." + column, {features});
  });
  return scale;
}

DenseLayer ModelFileReader::layer(const std::string &name) {
  DenseLayer layer;
  layer.weight = numbers(name + ".weight", {-1, -1});
  if (!ok())
    return layer;
  const std::vector<int64_t> &shape = file.tensors.at(name + ".weight").shape;
  layer.out = shape[0];
  layer.in = shape[1];
  layer.bias = numbers(name + ".bias", {layer.out});
  return layer;
}

bool ModelFileReader::hasLayer(const std::string &name) const {
  return file.tensors.contains(name + ".weight");
}

void ModelFileReader::expectTensors(size_t count) {
  if (file.tensors.size() != count)
    error("tensors", "expected " + std::to_string(count) + ", got " +
                         std::to_string(file.tensors.size()));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string neuroshard::textOfNames(std::span<const std::string_view> names) {
  json list = json::array();
  for (std::string_view name : names)
    list.push_back(name);
  return list.dump();
}

void neuroshard::addInterval(const PredictionInterval &interval,
                             TensorFile &file) {
  if (interval.isKnown())
    file.metadata["interval"] =
        json{{"low", interval.low}, {"high", interval.high}}.dump();
}

void neuroshard::addScale(const std::string &name, const FeatureScale &scale,
                          TensorFile &file) {
  forEachColumn(scale,
                [&](const char *column, const std::vector<float> &values) {
                  file.tensors[name + "." + column] = makeTensor<float>(values);
                });
}

void neuroshard::addLayer(const std::string &name, const DenseLayer &layer,
                          TensorFile &file) {
  file.tensors[name + ".weight"] =
      makeTensor<float>(layer.weight, {layer.out, layer.in});
  file.tensors[name + ".bias"] = makeTensor<float>(layer.bias);
}
