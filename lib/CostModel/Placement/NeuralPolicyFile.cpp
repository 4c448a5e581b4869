//===- NeuralPolicyFile.cpp - Files of placement policies -----------------===//

#include "neuroshard/CostModel/NeuralPolicy.h"

#include "Layers/ModelFile.h"
#include "neuroshard/CostModel/ModelLibrary.h"

#include <filesystem>

using namespace neuroshard;
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

} // namespace

Diagnostics neuroshard::check(const PlacementPolicyParameters &parameters) {
  Diagnostics errors;
  checkScale("table_features", parameters.tableScale, featureNames(), errors);
  checkScale("device_features", parameters.deviceScale, placementFeatureNames(),
             errors);
  if (!errors.empty())
    return errors;
  int64_t in = kFeatureCount;
  forEachLayer(parameters,
               [&](const std::string &name, const DenseLayer &layer) {
                 if (&layer == &parameters.head[0])
                   in = 3 * in + kPlacementFeatureCount;
                 checkLayer(name, layer, in, errors);
                 in = layer.out;
               });
  if (in != 1)
    errors.push_back(
        {"head.2", "expected 1 output, got " + std::to_string(in)});
  checkCard(parameters.card, errors);
  return errors;
}

Expected<PlacementPolicyParameters>
neuroshard::toPlacementPolicyParameters(const TensorFile &file) {
  ModelFileReader reader(file);
  PlacementPolicyParameters parameters;
  reader.expect("schema", kPlacementPolicySchema);
  reader.expect("architecture", kArchitecture);
  reader.expectNames("table_feature_names", featureNames());
  reader.expectNames("device_feature_names", placementFeatureNames());
  parameters.card = reader.text("card");
  parameters.tableScale = reader.scale("table_features", kFeatureCount);
  parameters.deviceScale =
      reader.scale("device_features", kPlacementFeatureCount);
  forEachLayer(parameters, [&](const std::string &name, DenseLayer &layer) {
    layer = reader.layer(name);
  });
  return reader.finish(std::move(parameters), kTensors);
}

Expected<TensorFile>
neuroshard::toTensorFile(const PlacementPolicyParameters &parameters) {
  if (Diagnostics errors = check(parameters); !errors.empty())
    return tl::unexpected(errors);
  TensorFile file;
  file.metadata = {
      {"schema", std::string(kPlacementPolicySchema)},
      {"architecture", kArchitecture},
      {"table_feature_names", textOfNames(featureNames())},
      {"device_feature_names", textOfNames(placementFeatureNames())},
      {"card", parameters.card}};
  addScale("table_features", parameters.tableScale, file);
  addScale("device_features", parameters.deviceScale, file);
  forEachLayer(parameters,
               [&](const std::string &name, const DenseLayer &layer) {
                 addLayer(name, layer, file);
               });
  return file;
}

Expected<std::unique_ptr<PlacementPolicy>>
neuroshard::readPlacementPolicy(const std::string &path) {
  std::string from =
      path.empty() ? (fs::path(modelsFolder()) / kShippedFile).string() : path;
  Expected<PlacementPolicyParameters> parameters =
      readTensorFile(from, toPlacementPolicyParameters);
  if (!parameters)
    return tl::unexpected(parameters.error());
  return makePlacementPolicy(*parameters, fs::path(from).stem().string());
}
