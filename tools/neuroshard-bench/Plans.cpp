//===- Plans.cpp - Runs plans on ranks of torch.distributed ---------------===//
//
// The measurement is Python (python/neuroshard/bench/plans.py), since what it
// measures is the module of PyTorch; this starts its ranks with torchrun.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Python.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard {
namespace {

struct PlansOptions {
  int ranks = 2;
  std::string python = NEUROSHARD_BENCH_PYTHON;
};

[[noreturn]] void runRanks(const PlansOptions &options,
                           const std::vector<std::string> &rest) {
  std::vector<std::string> words = {"-m",
                                    "torch.distributed.run",
                                    "--standalone",
                                    "--nproc-per-node",
                                    std::to_string(options.ranks),
                                    "-m",
                                    "neuroshard.bench.plans"};
  words.insert(words.end(), rest.begin(), rest.end());
  runPython(options.python, words);
}

} // namespace

void addPlansBenchmark(CLI::App &app) {
  auto options = std::make_shared<PlansOptions>();
  CLI::App *command = app.add_subcommand(
      "plans", "Measured step times of the plans of all algorithms, run by the "
               "module of PyTorch on ranks of this machine; further options: "
               "-o FILE --tasks N --rounds N --seed N --batch N --megabytes N "
               "--algorithms A,B");
  command->add_option("--ranks", options->ranks, "Processes")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command
      ->add_option("--python", options->python,
                   "Python interpreter that has torch")
      ->capture_default_str();
  command->allow_extras();
  command->callback([=] { runRanks(*options, command->remaining()); });
}

} // namespace neuroshard
