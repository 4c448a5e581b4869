//===- Plans.cpp - neuroshard-collect plans -------------------------------===//

#include "Plans.h"

#include "Progress.h"
#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Serialization/Json.h"

#include <cstdio>
#include <filesystem>

using namespace neuroshard;

namespace {

int fail(const Diagnostics &diagnostics) {
  std::fprintf(stderr, "error: %s\n", toString(diagnostics).c_str());
  return 1;
}

} // namespace

CLI::App *neuroshard::addPlansCommand(CLI::App &app, PlansSettings &settings) {
  settings.costModel = kDefaultCostModel;
  CLI::App *command = app.add_subcommand(
      "plans", "Plan random tasks with every algorithm, run each device's "
               "shards here, and compare with the predictions");
  command->add_option("-o,--output", settings.path, "JSON file to write")
      ->required();
  command
      ->add_option("--cost-model", settings.costModel,
                   std::string(kCostModelNames))
      ->capture_default_str();
  command->add_option("--tasks", settings.options.tasks, "Random tasks")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      ->add_option("--devices", settings.options.devices,
                   "Device counts to plan each task for")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", settings.options.seed, "Names the tasks")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--threads", settings.options.measure.threads,
                   "Threads of a device")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  return command;
}

int neuroshard::runPlans(const PlansSettings &settings) {
  if (std::filesystem::exists(settings.path))
    return fail({{settings.path, "exists already; name another file"}});
  Expected<Topology> topology = parseTopology("2xCPU");
  if (!topology)
    return fail(topology.error());
  auto model = makeCostModel(settings.costModel, *topology);
  if (!model)
    return fail(model.error());
  auto plans = measurePlans(settings.options, **model, stopRequested(),
                            [](int done, int all) {
                              showProgress(std::to_string(done) + " of " +
                                           std::to_string(all) + " tasks");
                            });
  endProgress();
  if (!plans)
    return fail(plans.error());
  if (Expected<void> written = writeFile(
          settings.path, toJson(*plans, settings.options, (*model)->name()));
      !written)
    return fail(written.error());
  std::fputs(summarise(*plans).c_str(), stdout);
  return 0;
}
