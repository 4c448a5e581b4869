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
  std::string cluster;
  std::string python = NEUROSHARD_BENCH_PYTHON;
};

[[noreturn]] void runRanks(const PlansOptions &options,
                           const std::vector<std::string> &rest) {
  std::vector<std::string> words = {"-m"};
  if (options.cluster.empty())
    words.insert(words.end(),
                 {"torch.distributed.run", "--standalone", "--nproc-per-node",
                  std::to_string(options.ranks)});
  else
    words.insert(words.end(), {"neuroshard.bench.cluster", options.cluster});
  words.insert(words.end(), {"-m", "neuroshard.bench.plans"});
  // "2x2@200mbit" is the topology 2x2xCPU@200mbit.
  if (size_t at = options.cluster.find('@'); at != std::string::npos)
    words.insert(words.end(),
                 {"--topology", options.cluster.substr(0, at) + "xCPU" +
                                    options.cluster.substr(at)});
  words.insert(words.end(), rest.begin(), rest.end());
  runPython(options.python, words);
}

} // namespace

void addPlansBenchmark(CommandLine &line) {
  auto options = std::make_shared<PlansOptions>();
  Command command = line.addCommand(
      "plans", "Measured step times of the plans of all algorithms, run by the "
               "module of PyTorch on ranks of this machine; further options: "
               "-o FILE --tasks N --rounds N --seed N --batch N --megabytes N "
               "--algorithms A,B");
  command.add("--ranks", options->ranks, "Processes").range(2, 64);
  command.add("--cluster", options->cluster,
              "Instead of --ranks: hosts emulated on this machine, such as "
              "2x2@200mbit (python/neuroshard/bench/cluster.py); needs root");
  command.add("--python", options->python, "Python interpreter that has torch");
  command.allowRest();
  command.action(
      [=]() -> Expected<void> { runRanks(*options, command.rest()); });
}

} // namespace neuroshard
