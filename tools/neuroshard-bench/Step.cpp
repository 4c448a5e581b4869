//===- Step.cpp - A training step, beside TorchRec's ----------------------===//
//
// The measurement is Python (python/neuroshard/bench/step.py), since what it
// measures is the modules of PyTorch; this starts its ranks.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Ranks.h"

#include <memory>

namespace neuroshard {

void addStepBenchmark(CommandLine &line) {
  auto options = std::make_shared<RankOptions>();
  Command command = line.addCommand(
      "step", "Wall and CPU time of a training step: our module, TorchRec's; "
              "further options: -o FILE "
              "--model TABLESxDIM,BATCH,POOLING --engines A,B --input "
              "jagged|keyed --optimizer NAME --rounds N --steps N");
  addRankOptions(command, *options, 1);
  command.allowRest();
  command.action([=]() -> Expected<void> {
    runOnRanks(*options, "neuroshard.bench.step", command.rest());
  });
}

} // namespace neuroshard
