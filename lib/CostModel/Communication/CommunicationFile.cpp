//===- CommunicationFile.cpp - Files of communication models --------------===//

#include "neuroshard/CostModel/CommunicationModel.h"

#include "Layers/CheckLayer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using namespace neuroshard;
using nlohmann::json;

namespace {

constexpr std::string_view kArchitecture = "device-set";

std::string layerName(size_t member, const char *part, size_t layer) {
  return "member" + std::to_string(member) + "." + part + "." +
         std::to_string(layer);
}

/// Calls visit(name, layer) for every layer of a member.
template <typename Member, typename Visit>
void forEachLayer(size_t index, Member &member, Visit visit) {
  for (size_t i = 0; i < member.phi.size(); ++i)
    visit(layerName(index, "phi", i), member.phi[i]);
  for (size_t i = 0; i < member.head.size(); ++i)
    visit(layerName(index, "head", i), member.head[i]);
}

template <typename Scale, typename Visit>
void forEachScaleColumn(Scale &scale, Visit visit) {
  visit("mean", scale.mean);
  visit("std", scale.std);
  visit("min", scale.min);
  visit("max", scale.max);
}

std::string inQuotes(std::string_view text) {
  std::string result = "'";
  result += text;
  result += '\'';
  return result;
}

json toJson(std::span<const std::string_view> names) {
  json list = json::array();
  for (std::string_view name : names)
    list.push_back(name);
  return list;
}

json toJson(const std::vector<LinkFigures> &links) {
  json list = json::array();
  for (const LinkFigures &link : links)
    list.push_back({{"latency_us", link.latencyUs},
                    {"bandwidth_gb_per_s", link.bandwidthGBps}});
  return list;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

class Checker {
public:
  explicit Checker(const CommunicationParameters &parameters)
      : parameters(parameters) {}

  Diagnostics run();

private:
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }
  void checkScale(const std::string &name, const FeatureScale &scale,
                  std::span<const std::string_view> features);
  void checkLayer(const std::string &name, const DenseLayer &layer, int64_t in);
  void checkMember(size_t index, const CommunicationMember &member);
  void checkFacts();

  const CommunicationParameters &parameters;
  Diagnostics errors;
};

void Checker::checkScale(const std::string &name, const FeatureScale &scale,
                         std::span<const std::string_view> features) {
  forEachScaleColumn(scale, [&](const char *column,
                                const std::vector<float> &values) {
    if (values.size() != features.size())
      error(name + "." + column, "expected " + std::to_string(features.size()) +
                                     " numbers, got " +
                                     std::to_string(values.size()));
    else if (!allFinite(values))
      error(name + "." + column, "expected finite numbers");
  });
  if (!errors.empty())
    return;
  for (size_t i = 0; i < features.size(); ++i) {
    if (!(scale.std[i] > 0))
      error(name + ".std", "expected positive numbers, got " +
                               std::to_string(scale.std[i]) + " for " +
                               inQuotes(features[i]));
    if (scale.min[i] > scale.max[i])
      error(name + ".min",
            "it is above " + name + ".max for " + inQuotes(features[i]));
  }
}

void Checker::checkLayer(const std::string &name, const DenseLayer &layer,
                         int64_t in) {
  if (std::string fault = faultOf(layer, in); !fault.empty())
    error(name, fault);
}

void Checker::checkMember(size_t index, const CommunicationMember &member) {
  size_t layers = 0;
  int64_t in = kDeviceFeatureCount;
  forEachLayer(index, member,
               [&](const std::string &name, const DenseLayer &layer) {
                 checkLayer(name, layer, in);
                 in = layer.out;
                 if (++layers == member.phi.size())
                   in = 4 * layer.out + kExchangeFeatureCount;
               });
  if (in != 1)
    error(layerName(index, "head", member.head.size() - 1),
          "expected 1 output, got " + std::to_string(in));
  if (errors.empty() && member.phi[1].out != parameters.members[0].phi[1].out)
    error("member" + std::to_string(index),
          "expected layers of the same sizes as member0");
}

void Checker::checkFacts() {
  if (!findDeviceClass(parameters.deviceClass))
    error("device_class", "unknown device class " +
                              inQuotes(parameters.deviceClass) +
                              "; known: " + deviceClassNames());
  if (parameters.backend.empty())
    error("backend", "expected the name of a back end");
  const std::vector<int> &levels = parameters.levelCounts;
  if (levels.empty() || levels.front() < 1 ||
      std::adjacent_find(levels.begin(), levels.end(), std::greater_equal()) !=
          levels.end())
    error("levels", "expected ascending numbers of levels of at least 1");
  for (const LinkFigures &link : parameters.links)
    if (!std::isfinite(link.latencyUs) || link.latencyUs < 0 ||
        !std::isfinite(link.bandwidthGBps) || link.bandwidthGBps <= 0)
      error("links", "expected finite latencies of at least 0 us and "
                     "bandwidths above 0 GB/s");
  if (!json::parse(parameters.card, nullptr, false).is_object())
    error("card", "expected a JSON object");
}

Diagnostics Checker::run() {
  checkScale("device_features", parameters.device, deviceFeatureNames());
  checkScale("exchange_features", parameters.exchange, exchangeFeatureNames());
  const auto &members = parameters.members;
  if (members.empty() || members.size() > kMaxMembers)
    error("members", "expected 1 to " + std::to_string(kMaxMembers) + ", got " +
                         std::to_string(members.size()));
  else
    for (size_t i = 0; i < members.size(); ++i)
      checkMember(i, members[i]);
  checkFacts();
  return std::move(errors);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class CommunicationFileReader {
public:
  explicit CommunicationFileReader(const TensorFile &file) : file(file) {}

  Expected<CommunicationParameters> read();

private:
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }
  std::string text(const char *key) {
    Expected<std::string> value = file.getMetadata(key);
    if (value)
      return *value;
    errors.push_back(value.error().front());
    return {};
  }
  std::vector<float> numbers(const std::string &name,
                             std::vector<int64_t> shape) {
    Expected<std::vector<float>> values = file.get<float>(name, shape);
    if (values)
      return std::move(*values);
    errors.push_back(values.error().front());
    return {};
  }
  void expect(const char *key, std::string_view wanted);
  void checkNames(const char *key, std::span<const std::string_view> wanted);
  void readFacts();
  void readScale(const std::string &name, FeatureScale &scale, int64_t count);
  DenseLayer readLayer(const std::string &name);
  void readMembers();
  void checkNothingElse();

  const TensorFile &file;
  Diagnostics errors;
  CommunicationParameters result;
};

void CommunicationFileReader::expect(const char *key, std::string_view wanted) {
  std::string found = text(key);
  if (errors.empty() && found != wanted)
    error(key, "expected " + inQuotes(wanted) + ", got " + inQuotes(found));
}

void CommunicationFileReader::checkNames(
    const char *key, std::span<const std::string_view> wanted) {
  std::string found = text(key);
  if (errors.empty() && found != toJson(wanted).dump())
    error(key, "the model was trained on other features than this version "
               "computes; train it again");
}

void CommunicationFileReader::readFacts() {
  result.deviceClass = text("device_class");
  result.backend = text("backend");
  result.card = text("card");
  std::string measured = text("measured");
  if (measured != "true" && measured != "false")
    error("measured", "expected true or false, got " + inQuotes(measured));
  result.measured = measured == "true";
  try {
    result.levelCounts = json::parse(text("levels")).get<std::vector<int>>();
    for (const json &link : json::parse(text("links")))
      result.links.push_back({link.at("latency_us").get<double>(),
                              link.at("bandwidth_gb_per_s").get<double>()});
  } catch (const json::exception &problem) {
    if (errors.empty())
      error("levels, links", std::string("malformed: ") + problem.what());
  }
}

void CommunicationFileReader::readScale(const std::string &name,
                                        FeatureScale &scale, int64_t count) {
  forEachScaleColumn(scale,
                     [&](const char *column, std::vector<float> &values) {
                       if (errors.empty())
                         values = numbers(name + "." + column, {count});
                     });
}

DenseLayer CommunicationFileReader::readLayer(const std::string &name) {
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

void CommunicationFileReader::readMembers() {
  for (size_t i = 0; i < kMaxMembers && errors.empty(); ++i) {
    if (i > 0 && !file.tensors.contains(layerName(i, "phi", 0) + ".weight"))
      break;
    CommunicationMember &member = result.members.emplace_back();
    forEachLayer(i, member, [&](const std::string &name, DenseLayer &layer) {
      if (errors.empty())
        layer = readLayer(name);
    });
  }
}

/// A tensor that nobody reads is a sign of another kind of file.
void CommunicationFileReader::checkNothingElse() {
  size_t known = 8 + result.members.size() * 10;
  if (file.tensors.size() != known)
    error("tensors", "expected " + std::to_string(known) + " for " +
                         std::to_string(result.members.size()) +
                         " members, got " +
                         std::to_string(file.tensors.size()));
}

Expected<CommunicationParameters> CommunicationFileReader::read() {
  expect("schema", kCommunicationModelSchema);
  if (errors.empty())
    expect("architecture", kArchitecture);
  if (errors.empty())
    checkNames("device_feature_names", deviceFeatureNames());
  if (errors.empty())
    checkNames("exchange_feature_names", exchangeFeatureNames());
  if (errors.empty())
    readFacts();
  if (errors.empty())
    readScale("device_features", result.device, kDeviceFeatureCount);
  if (errors.empty())
    readScale("exchange_features", result.exchange, kExchangeFeatureCount);
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

Diagnostics neuroshard::check(const CommunicationParameters &parameters) {
  return Checker(parameters).run();
}

Expected<CommunicationParameters>
neuroshard::toCommunicationParameters(const TensorFile &file) {
  return CommunicationFileReader(file).read();
}

Expected<TensorFile>
neuroshard::toTensorFile(const CommunicationParameters &parameters) {
  if (Diagnostics errors = check(parameters); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  file.metadata = {
      {"schema", std::string(kCommunicationModelSchema)},
      {"architecture", std::string(kArchitecture)},
      {"device_feature_names", toJson(deviceFeatureNames()).dump()},
      {"exchange_feature_names", toJson(exchangeFeatureNames()).dump()},
      {"device_class", parameters.deviceClass},
      {"backend", parameters.backend},
      {"levels", json(parameters.levelCounts).dump()},
      {"links", toJson(parameters.links).dump()},
      {"measured", parameters.measured ? "true" : "false"},
      {"card", parameters.card}};
  for (auto [name, scale] :
       {std::pair("device_features.", &parameters.device),
        std::pair("exchange_features.", &parameters.exchange)})
    forEachScaleColumn(
        *scale, [&](const char *column, const std::vector<float> &values) {
          file.tensors[std::string(name) + column] = makeTensor<float>(values);
        });
  for (size_t i = 0; i < parameters.members.size(); ++i)
    forEachLayer(i, parameters.members[i],
                 [&](const std::string &name, const DenseLayer &layer) {
                   file.tensors[name + ".weight"] =
                       makeTensor<float>(layer.weight, {layer.out, layer.in});
                   file.tensors[name + ".bias"] = makeTensor<float>(layer.bias);
                 });
  return file;
}
