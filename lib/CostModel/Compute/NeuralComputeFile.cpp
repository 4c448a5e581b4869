//===- NeuralComputeFile.cpp - Files of compute models --------------------===//

#include "neuroshard/CostModel/NeuralCompute.h"

#include "Layers/ModelFile.h"

#include <charconv>

using namespace neuroshard;

namespace {

constexpr const char *kArchitecture = "set-mlp";

constexpr MemberLayers kComputeLayers{"table", &NeuralComputeMember::table};

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

class Checker {
public:
  explicit Checker(const NeuralComputeParameters &parameters)
      : parameters(parameters) {}

  Diagnostics run() {
    checkScale("features", parameters.features, featureNames(), errors);
    checkMembers();
    if (parameters.deviceClass.empty())
      error("device_class", "expected the name of a device class");
    if (parameters.maxShards < 0)
      error("max_shards", "expected a number of at least 0");
    checkCard(parameters.card, errors);
    checkInterval(parameters.interval, errors);
    return std::move(errors);
  }

private:
  void error(std::string where, std::string message) {
    errors.push_back({std::move(where), std::move(message)});
  }
  void checkMembers();
  void expectWidth(const std::string &name, const DenseLayer &layer,
                   int64_t least, int64_t most);
  void checkChain(size_t index, const NeuralComputeMember &member);

  const NeuralComputeParameters &parameters;
  Diagnostics errors;
};

void Checker::expectWidth(const std::string &name, const DenseLayer &layer,
                          int64_t least, int64_t most) {
  if (layer.out < least || layer.out > most)
    error(name, "expected " + std::to_string(least) + " to " +
                    std::to_string(most) + " outputs, got " +
                    std::to_string(layer.out));
}

void Checker::checkChain(size_t index, const NeuralComputeMember &member) {
  int64_t in = kFeatureCount;
  kComputeLayers.forEach(index, member,
                         [&](const std::string &name, const DenseLayer &layer) {
                           checkLayer(name, layer, in, errors);
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
    kComputeLayers.forEach(0, member,
                           [&](const std::string &, const DenseLayer &layer) {
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

int64_t readCount(ModelFileReader &reader, const char *key) {
  std::string text = reader.text(key);
  const char *end = text.data() + text.size();
  int64_t count = 0;
  auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end)
    reader.error(key, "expected a count, got " + inQuotes(text));
  return count;
}

} // namespace

Diagnostics neuroshard::check(const NeuralComputeParameters &parameters) {
  return Checker(parameters).run();
}

Expected<NeuralComputeParameters>
neuroshard::toComputeParameters(const TensorFile &file) {
  ModelFileReader reader(file);
  NeuralComputeParameters parameters;
  reader.expect("schema", kComputeModelSchema);
  reader.expect("architecture", kArchitecture);
  reader.expectNames("feature_names", featureNames());
  parameters.deviceClass = reader.text("device_class");
  parameters.card = reader.text("card");
  parameters.interval = reader.interval();
  parameters.measured = reader.flag("measured");
  parameters.maxShards = readCount(reader, "max_shards");
  parameters.features = reader.scale("features", kFeatureCount);
  parameters.members = kComputeLayers.read(reader);
  size_t tensors = 4 + parameters.members.size() * 10;
  return reader.finish(std::move(parameters), tensors);
}

Expected<TensorFile>
neuroshard::toTensorFile(const NeuralComputeParameters &parameters) {
  if (Diagnostics errors = check(parameters); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  file.metadata = {{"schema", std::string(kComputeModelSchema)},
                   {"architecture", kArchitecture},
                   {"feature_names", textOfNames(featureNames())},
                   {"device_class", parameters.deviceClass},
                   {"measured", parameters.measured ? "true" : "false"},
                   {"max_shards", std::to_string(parameters.maxShards)},
                   {"card", parameters.card}};
  addInterval(parameters.interval, file);
  addScale("features", parameters.features, file);
  kComputeLayers.add(parameters.members, file);
  return file;
}
