//===- neuroshard-train.cpp - Trains models, and judges them --------------===//
//
// docs/training.md shows the commands at work.
//
//===----------------------------------------------------------------------===//

#include "ModelCommands.h"
#include "PlacementCommands.h"

int main(int argc, char **argv) {
  neuroshard::CommandLine line(
      "neuroshard-train",
      "Trains cost models from measurements, and judges them");
  neuroshard::addModelCommands(line);
  neuroshard::addPlacementCommands(line);
  return line.run(argc, argv);
}
