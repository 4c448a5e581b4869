//===- neuroshard-run.cpp - Runs an artifact on this machine --------------===//
//
// Opens what neuroshard-compile wrote, runs it on random batches with all
// devices in this process, and compares with the unsharded program.
//
//===----------------------------------------------------------------------===//

#include "Drive.h"
#include "Options.h"

#include <iostream>

using namespace neuroshard;

int main(int argc, char **argv) {
  CommandLine line("neuroshard-run",
                   "Runs an artifact on random batches, all devices in this "
                   "process, and compares it with the unsharded program");
  run::DriveOptions options;
  Command program = line.program();
  run::addOptions(program, options);
  program.action([&]() -> Expected<void> {
    run::drive(options, std::cout);
    return {};
  });
  return line.run(argc, argv);
}
