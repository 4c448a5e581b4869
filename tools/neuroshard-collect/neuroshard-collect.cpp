//===- neuroshard-collect.cpp - Measures what cost models learn from ------===//

#include "Commands.h"

int main(int argc, char **argv) {
  neuroshard::CommandLine line("neuroshard-collect",
                               "Measures shard sets and plans on this machine");
  neuroshard::addComputeCommand(line);
  neuroshard::addPlansCommand(line);
  neuroshard::addSetsCommand(line);
  return line.run(argc, argv);
}
