//===- ModelLibrary.cpp - The trained models for a topology --------------===//

#include "neuroshard/CostModel/ModelLibrary.h"

#include "neuroshard/CostModel/NeuralPolicy.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>

using namespace neuroshard;
namespace fs = std::filesystem;

namespace {

constexpr const char *kFolderVariable = "NEUROSHARD_MODELS";

/// Placement policies lie in the same folder and predict nothing. False for a
/// file that cannot be read, so that reading it reports why.
bool isPlacementPolicy(const std::string &path) {
  Expected<TensorFile> file = readTensorFile(path);
  if (!file)
    return false;
  auto schema = file->metadata.find("schema");
  return schema != file->metadata.end() &&
         schema->second == kPlacementPolicySchema;
}

/// The program or shared object that holds this code.
fs::path ownFile() {
  Dl_info info;
  link_map *map = nullptr;
  int found = dladdr1(reinterpret_cast<void *>(&modelsFolder), &info,
                      reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP);
  // The program itself has no name in the list of loaded objects.
  if (found == 0 || !map || !map->l_name || !*map->l_name)
    return "/proc/self/exe";
  return map->l_name;
}

tl::unexpected<Diagnostics> ambiguous(const std::string &what,
                                      const std::string &first,
                                      const std::string &second) {
  return failure("cost_model", "two " + what + ", '" + first + "' and '" +
                                   second +
                                   "'; remove one, or name the files to use");
}

} // namespace

Expected<void> neuroshard::addModelFile(const std::string &path,
                                        ModelParts &parts) {
  Expected<TensorFile> file = readTensorFile(path);
  if (!file)
    return tl::unexpected(file.error());
  std::string name = fs::path(path).stem().string();
  auto schema = file->metadata.find("schema");
  std::string found = schema == file->metadata.end() ? "" : schema->second;
  if (found == kComputeModelSchema) {
    auto parameters = toComputeParameters(*file);
    if (!parameters)
      return tl::unexpected(inFile(path, parameters.error()));
    parts.compute.push_back(
        {name, std::make_shared<NeuralCompute>(*parameters)});
    return {};
  }
  if (found == kCommunicationModelSchema) {
    auto parameters = toCommunicationParameters(*file);
    if (!parameters)
      return tl::unexpected(inFile(path, parameters.error()));
    parts.communication.push_back(
        {name, std::make_shared<CommunicationModel>(*parameters)});
    return {};
  }
  return failure(path, "not a cost model: expected the schema '" +
                           std::string(kComputeModelSchema) + "' or '" +
                           std::string(kCommunicationModelSchema) + "', got '" +
                           found + "'");
}

std::string neuroshard::modelsFolder() {
  if (const char *folder = std::getenv(kFolderVariable); folder && *folder)
    return folder;
  std::error_code error;
  fs::path file = fs::canonical(ownFile(), error);
  // In the Python package: beside its module, or above the tools in its bin.
  for (const fs::path &above :
       {file.parent_path(), file.parent_path().parent_path()})
    if (fs::is_directory(above / "models", error))
      return (above / "models").string();
  return (file.parent_path().parent_path() / "share" / "neuroshard" / "models")
      .string();
}

Expected<ModelParts> neuroshard::readModelsFolder(const std::string &folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) {
    const char *named = std::getenv(kFolderVariable);
    if (named && folder == named)
      return failure(kFolderVariable, "cannot read the folder '" + folder +
                                          "': " + error.message());
    ModelParts none;
    none.missingFolder = folder;
    return none;
  }
  std::vector<std::string> paths;
  for (const fs::directory_entry &entry : entries)
    if (entry.path().extension() == ".safetensors")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  ModelParts parts;
  for (const std::string &path : paths) {
    if (isPlacementPolicy(path))
      continue;
    if (Expected<void> added = addModelFile(path, parts); !added)
      return tl::unexpected(added.error());
  }
  return parts;
}

bool neuroshard::usesKernelsOf(const Topology &topology,
                               std::string_view deviceClass) {
  return std::ranges::any_of(topology.devices, [&](const Device &device) {
    const DeviceClass *known = findDeviceClass(topology, device.deviceClass);
    return known && known->kernels().name == deviceClass;
  });
}

Expected<ModelParts> neuroshard::partsFor(const Topology &topology,
                                          const ModelParts &all,
                                          bool measuredOnly) {
  ModelParts chosen;
  chosen.missingFolder = all.missingFolder;
  for (const ComputePart &part : all.compute) {
    const std::string &deviceClass = part.model->deviceClass();
    if ((measuredOnly && !part.model->measured()) ||
        !usesKernelsOf(topology, deviceClass))
      continue;
    for (const ComputePart &other : chosen.compute)
      if (other.model->deviceClass() == deviceClass)
        return ambiguous("compute models for device class " + deviceClass,
                         other.name, part.name);
    chosen.compute.push_back(part);
  }
  for (const CommunicationPart &part : all.communication) {
    if ((measuredOnly && !part.model->measured()) ||
        !part.model->covers(topology))
      continue;
    if (!chosen.communication.empty())
      return ambiguous("communication models for the topology",
                       chosen.communication[0].name, part.name);
    chosen.communication.push_back(part);
  }
  return chosen;
}
