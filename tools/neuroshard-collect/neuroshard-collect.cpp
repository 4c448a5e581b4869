//===- neuroshard-collect.cpp - Measures what cost models learn from ------===//

#include "Compute.h"

using namespace neuroshard;

int main(int argc, char **argv) {
  CLI::App app("Measures the compute of shard sets, for neuroshard-train",
               "neuroshard-collect");
  app.require_subcommand(1);
  CollectOptions compute;
  CLI::App *computeCommand = addComputeCommand(app, compute);
  CLI11_PARSE(app, argc, argv);
  if (computeCommand->parsed())
    return runCompute(compute);
  return 0;
}
