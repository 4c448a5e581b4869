//===- neuroshard-collect.cpp - Measures what cost models learn from ------===//

#include "Compute.h"
#include "Plans.h"
#include "Sets.h"

using namespace neuroshard;

int main(int argc, char **argv) {
  CLI::App app("Measures shard sets and plans on this machine",
               "neuroshard-collect");
  app.require_subcommand(1);
  CollectOptions compute;
  CLI::App *computeCommand = addComputeCommand(app, compute);
  PlansSettings plans;
  addPlansCommand(app, plans);
  SetListOptions sets;
  CLI::App *setsCommand = addSetsCommand(app, sets);
  CLI11_PARSE(app, argc, argv);
  if (computeCommand->parsed())
    return runCompute(compute);
  return setsCommand->parsed() ? runSets(sets) : runPlans(plans);
}
