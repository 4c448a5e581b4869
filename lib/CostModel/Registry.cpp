//===- Registry.cpp - Cost models by name ---------------------------------===//

#include "neuroshard/CostModel/Registry.h"

#include "DriftRemarks.h"
#include "Plugin/Registered.h"
#include "RouteRemarks.h"
#include "neuroshard/CostModel/CalibratedModel.h"
#include "neuroshard/CostModel/ModelLibrary.h"
#include "neuroshard/CostModel/Plugin.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/ClosestName.h"

#include <algorithm>
#include <filesystem>

using namespace neuroshard;

namespace {

/// Splits a text at its commas; parts may be empty.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> pieces;
  while (true) {
    size_t comma = text.find(',');
    pieces.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos)
      return pieces;
    text.remove_prefix(comma + 1);
  }
}

Expected<std::unique_ptr<CostModel>>
compose(const Topology &topology, const ModelParts &all, bool measuredOnly) {
  Expected<ModelParts> parts = partsFor(topology, all, measuredOnly);
  if (!parts)
    return tl::unexpected(parts.error());
  return composeModel(std::move(*parts));
}

Expected<std::unique_ptr<CostModel>> makeShipped(const Topology &topology) {
  Expected<ModelParts> all = readModelsFolder(modelsFolder());
  if (!all)
    return tl::unexpected(all.error());
  return compose(topology, *all, /*measuredOnly=*/true);
}

/// An error for files that the topology does not use.
Expected<std::unique_ptr<CostModel>>
makeFromFiles(const std::vector<std::string> &paths, const Topology &topology) {
  ModelParts all;
  for (const std::string &path : paths)
    if (Expected<void> added = addModelFile(path, all); !added)
      return tl::unexpected(added.error());
  Expected<ModelParts> used = partsFor(topology, all, /*measuredOnly=*/false);
  if (!used)
    return tl::unexpected(used.error());
  if (used->compute.size() < all.compute.size())
    for (const ComputePart &part : all.compute)
      if (!usesKernelsOf(topology, part.model->deviceClass()))
        return failure("cost_model",
                       "model '" + part.name + "' is for device class " +
                           part.model->deviceClass() +
                           ", of which the topology has no device");
  if (used->communication.size() < all.communication.size())
    return failure("cost_model",
                   "model '" + all.communication[0].name +
                       "' was trained on other device classes or another "
                       "number of levels than the topology has");
  return composeModel(std::move(*used));
}

/// The model that a machine file corrects.
Expected<std::unique_ptr<CostModel>> makeFromMachine(const std::string &path,
                                                     const Topology &topology) {
  Expected<Machine> machine = readMachine(path);
  if (!machine)
    return tl::unexpected(machine.error());
  if (std::string_view(machine->costModel).ends_with(kMachineFileEnding))
    return failure(path + ": cost_model",
                   "expected a model, not another machine file, got: '" +
                       machine->costModel + "'");
  auto model = makeCostModel(machine->costModel, topology);
  if (!model)
    return tl::unexpected(inFile(path, model.error()));
  std::string name =
      std::filesystem::path(path).stem().string() + ":" + (*model)->name();
  return calibrate(*std::move(model), *machine, std::move(name));
}

std::string unknownName(std::string_view name) {
  std::vector<std::string> registered = registeredCostModels();
  std::string text = "expected auto, roofline, reference, .safetensors files "
                     "separated by commas or a machine file (.json)";
  for (size_t i = 0; i < registered.size(); ++i)
    text += (i == 0 ? ", or a registered model (" : ", ") + registered[i];
  text += (registered.empty() ? ", got: '" : "), got: '") + std::string(name);
  registered.insert(registered.end(), {"auto", "roofline", "reference"});
  return text + "'" + didYouMean(name, registered);
}

} // namespace

Expected<std::unique_ptr<CostModel>>
neuroshard::makeCostModel(std::string_view name, const Topology &topology) {
  if (name == "auto")
    return makeShipped(topology);
  if (name == "roofline")
    return makeRooflineModel();
  if (name == "reference")
    return makeReferenceModel();
  if (name.ends_with(kMachineFileEnding))
    return makeFromMachine(std::string(name), topology);
  if (!isBuiltInCostModel(name))
    if (auto model = makeRegistered(name, topology); !model || *model)
      return model;
  std::vector<std::string> paths = split(name);
  for (const std::string &path : paths)
    if (!path.ends_with(kModelFileEnding))
      return failure("cost_model", unknownName(name));
  return makeFromFiles(paths, topology);
}

std::vector<std::string>
neuroshard::remarksOnPlan(const ShardingProblem &problem,
                          const ShardingPlan &plan, const CostModel &model) {
  std::vector<std::string> remarks =
      model.remarks(describePlan(problem, plan).sets, problem.topology);
  std::optional<Target> measured = model.measuredTarget();
  if (measured && *measured != problem.target)
    remarks.push_back("'" + model.name() + "' has steps that " +
                      std::string(toString(*measured)) +
                      " has run, the plan is for " +
                      std::string(toString(problem.target)) +
                      ": calibrate with its --engine");
  addDriftRemarks(plan, remarks);
  addRouteRemarks(problem, plan, remarks);
  return remarks;
}
