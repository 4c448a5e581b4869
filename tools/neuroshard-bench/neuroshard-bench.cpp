//===- neuroshard-bench.cpp - Benchmarks ----------------------------------===//

#include "Bench.h"

int main(int argc, char **argv) {
  CLI::App app("Measures parts of NeuroShard on this machine");
  app.require_subcommand(1);
  neuroshard::addHeadsBenchmark(app);
  neuroshard::addKernelsBenchmark(app);
  neuroshard::addModelCommand(app);
  neuroshard::addPlannersBenchmark(app);
  neuroshard::addPlansBenchmark(app);
  neuroshard::addSearchBenchmark(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError &error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return 0;
}
