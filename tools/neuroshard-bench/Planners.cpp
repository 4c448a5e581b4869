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

void addPlannersBenchmark(CommandLine &line) {
  auto python = std::make_shared<std::string>(NEUROSHARD_BENCH_PYTHON);
  Command command = line.addCommand(
      "planners", "Plans of TorchRec's planner beside ours: predicted step, "
                  "planning seconds, memory; further options: WORKLOAD... "
                  "--source DIR --devices 8xH200 --repeats N --quick -o FILE");
  command.add("--python", *python, "Python interpreter that has torchrec");
  command.allowRest();
  command.action([=]() -> Expected<void> {
    std::vector<std::string> words = command.rest();
    words.insert(words.begin(), {"-m", "neuroshard.bench.planners"});
    runPython(*python, words);
  });
}

} // namespace neuroshard
