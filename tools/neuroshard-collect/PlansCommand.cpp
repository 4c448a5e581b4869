//===- PlansCommand.cpp - The command `neuroshard-collect plans` ----------===//

#include "Commands.h"
#include "Progress.h"

#include "neuroshard/Collect/PlanMeasurement.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Serialization/Json.h"

#include <cstdio>
#include <filesystem>
#include <memory>

namespace neuroshard {

namespace {

struct PlansSettings {
  PlanMeasurementOptions options;
  std::string costModel{kDefaultCostModel};
  std::string path;
};

Expected<void> measure(const PlansSettings &settings) {
  if (std::filesystem::exists(settings.path))
    return failure(settings.path, "exists already; name another file");
  Expected<Topology> topology = parseTopology("2xCPU");
  if (!topology)
    return tl::unexpected(topology.error());
  auto model = makeCostModel(settings.costModel, *topology);
  if (!model)
    return tl::unexpected(model.error());
  auto plans = measurePlans(settings.options, **model, stopRequested(),
                            [](int done, int all) {
                              showProgress(std::to_string(done) + " of " +
                                           std::to_string(all) + " tasks");
                            });
  endProgress();
  if (!plans)
    return tl::unexpected(plans.error());
  if (Expected<void> written = writeFile(
          settings.path, toJson(*plans, settings.options, (*model)->name()));
      !written)
    return written;
  std::fputs(summarise(*plans).c_str(), stdout);
  return {};
}

} // namespace

void addPlansCommand(CommandLine &line) {
  auto settings = std::make_shared<PlansSettings>();
  PlanMeasurementOptions &options = settings->options;
  Command command = line.addCommand(
      "plans", "Plan random tasks with every algorithm, run each device's "
               "shards here, and compare with the predictions");
  command.add("-o,--output", settings->path, "JSON file to write")
      .output("file")
      .required();
  command.add("--cost-model", settings->costModel,
              std::string(kCostModelNames));
  command.add("--tasks", options.tasks, "Random tasks").range(1, 10000);
  command
      .add("--devices", options.devices, "Device counts to plan each task for")
      .commas()
      .range(1, 1024);
  command.add("--seed", options.seed, "Names the tasks");
  command.add("--threads", options.measure.threads, "Threads of a device")
      .range(1, 1024);
  command.action([settings] { return measure(*settings); });
}

} // namespace neuroshard
