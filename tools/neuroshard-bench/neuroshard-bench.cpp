//===- neuroshard-bench.cpp - Benchmarks ----------------------------------===//

#include "Bench.h"

int main(int argc, char **argv) {
  neuroshard::CommandLine line("neuroshard-bench",
                               "Measures parts of NeuroShard on this machine");
  neuroshard::addHeadsBenchmark(line);
  neuroshard::addKernelsBenchmark(line);
  neuroshard::addModelCommand(line);
  neuroshard::addPlannersBenchmark(line);
  neuroshard::addPlansBenchmark(line);
  neuroshard::addSearchBenchmark(line);
  neuroshard::addStepBenchmark(line);
  return line.run(argc, argv);
}
