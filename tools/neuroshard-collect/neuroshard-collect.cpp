//===- neuroshard-collect.cpp - Measures what cost models learn from ------===//

#include "Compute.h"
#include "Plans.h"

using namespace neuroshard;

int main(int argc, char **argv) {
  CLI::App app("Measures shard sets and plans on this machine",
               "neuroshard-collect");
  app.require_subcommand(1);
  CollectOptions compute;
  CLI::App *computeCommand = addComputeCommand(app, compute);
  PlansSettings plans;
  addPlansCommand(app, plans);
  CLI11_PARSE(app, argc, argv);
  return computeCommand->parsed() ? runCompute(compute) : runPlans(plans);
}
