//===- CommunicationFile.cpp - Files of communication models --------------===//

#include "neuroshard/CostModel/CommunicationModel.h"

#include "Layers/ModelFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using namespace neuroshard;
using nlohmann::json;

namespace {

constexpr std::string_view kArchitecture = "device-set";

constexpr MemberLayers kCommunicationLayers{"phi", &CommunicationMember::phi};

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
  void checkMember(size_t index, const CommunicationMember &member);
  void checkFacts();

  const CommunicationParameters &parameters;
  Diagnostics errors;
};

void Checker::checkMember(size_t index, const CommunicationMember &member) {
  size_t layers = 0;
  int64_t in = kDeviceFeatureCount;
  kCommunicationLayers.forEach(
      index, member, [&](const std::string &name, const DenseLayer &layer) {
        checkLayer(name, layer, in, errors);
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
  checkCard(parameters.card, errors);
  checkInterval(parameters.interval, errors);
}

Diagnostics Checker::run() {
  checkScale("device_features", parameters.device, deviceFeatureNames(),
             errors);
  checkScale("exchange_features", parameters.exchange, exchangeFeatureNames(),
             errors);
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

void readTopologyFacts(ModelFileReader &reader,
                       CommunicationParameters &result) {
  std::string levels = reader.text("levels"), links = reader.text("links");
  if (!reader.ok())
    return;
  try {
    result.levelCounts = json::parse(levels).get<std::vector<int>>();
    for (const json &link : json::parse(links))
      result.links.push_back({link.at("latency_us").get<double>(),
                              link.at("bandwidth_gb_per_s").get<double>()});
  } catch (const json::exception &problem) {
    reader.error("levels, links", std::string("malformed: ") + problem.what());
  }
}

} // namespace

Diagnostics neuroshard::check(const CommunicationParameters &parameters) {
  return Checker(parameters).run();
}

Expected<CommunicationParameters>
neuroshard::toCommunicationParameters(const TensorFile &file) {
  ModelFileReader reader(file);
  CommunicationParameters parameters;
  reader.expect("schema", kCommunicationModelSchema);
  reader.expect("architecture", kArchitecture);
  reader.expectNames("device_feature_names", deviceFeatureNames());
  reader.expectNames("exchange_feature_names", exchangeFeatureNames());
  parameters.deviceClass = reader.text("device_class");
  parameters.backend = reader.text("backend");
  parameters.card = reader.text("card");
  parameters.interval = reader.interval();
  parameters.measured = reader.flag("measured");
  readTopologyFacts(reader, parameters);
  parameters.device = reader.scale("device_features", kDeviceFeatureCount);
  parameters.exchange =
      reader.scale("exchange_features", kExchangeFeatureCount);
  parameters.members = kCommunicationLayers.read(reader);
  size_t tensors = 8 + parameters.members.size() * 10;
  return reader.finish(std::move(parameters), tensors);
}

Expected<TensorFile>
neuroshard::toTensorFile(const CommunicationParameters &parameters) {
  if (Diagnostics errors = check(parameters); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  file.metadata = {
      {"schema", std::string(kCommunicationModelSchema)},
      {"architecture", std::string(kArchitecture)},
      {"device_feature_names", textOfNames(deviceFeatureNames())},
      {"exchange_feature_names", textOfNames(exchangeFeatureNames())},
      {"device_class", parameters.deviceClass},
      {"backend", parameters.backend},
      {"levels", json(parameters.levelCounts).dump()},
      {"links", toJson(parameters.links).dump()},
      {"measured", parameters.measured ? "true" : "false"},
      {"card", parameters.card}};
  addInterval(parameters.interval, file);
  addScale("device_features", parameters.device, file);
  addScale("exchange_features", parameters.exchange, file);
  kCommunicationLayers.add(parameters.members, file);
  return file;
}
