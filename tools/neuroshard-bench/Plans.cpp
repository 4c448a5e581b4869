//===- Plans.cpp - Runs plans on ranks of torch.distributed ---------------===//
//
// The measurement is Python (python/neuroshard/bench/plans.py), since what it
// measures is the module of PyTorch; this starts its ranks.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Ranks.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

void addPlansBenchmark(CommandLine &line) {
  auto options = std::make_shared<RankOptions>();
  Command command = line.addCommand(
      "plans",
      "Measured step times of the plans of all algorithms, run by the "
      "module of PyTorch on ranks of this machine; further options: "
      "-o FILE --tasks N --rounds N --seed N --batch N --megabytes N "
      "--algorithms A,B --cost-model NAME --wire-types auto --torchrec");
  addRankOptions(command, *options, 2);
  command.allowRest();
  command.action([=]() -> Expected<void> {
    std::vector<std::string> words = command.rest();
    if (std::string topology = topologyOf(*options); !topology.empty())
      words.insert(words.begin(), {"--topology", topology});
    runOnRanks(*options, "neuroshard.bench.plans", words);
  });
}

} // namespace neuroshard
