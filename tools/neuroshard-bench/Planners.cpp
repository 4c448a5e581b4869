//===- Planners.cpp - TorchRec's planner and ours, side by side -----------===//
//
// TorchRec is Python, and so is the comparison
// (python/neuroshard/bench/planners.py); this starts it.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Python.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

void addPlannersBenchmark(CLI::App &app) {
  auto python = std::make_shared<std::string>(NEUROSHARD_BENCH_PYTHON);
  CLI::App *command = app.add_subcommand(
      "planners", "Plans of TorchRec's planner beside ours: predicted step, "
                  "planning seconds, memory; further options: WORKLOAD... "
                  "--source DIR --devices 8xH200 --repeats N --quick -o FILE");
  command
      ->add_option("--python", *python, "Python interpreter that has torchrec")
      ->capture_default_str();
  command->allow_extras();
  command->callback([=] {
    std::vector<std::string> words = command->remaining();
    words.insert(words.begin(), {"-m", "neuroshard.bench.planners"});
    runPython(*python, words);
  });
}

} // namespace neuroshard
