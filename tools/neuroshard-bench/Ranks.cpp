//===- Ranks.cpp - Benchmarks on ranks of torch.distributed ---------------===//

#include "Ranks.h"
#include "Python.h"

#include <cstdlib>

namespace neuroshard {

/// Lets glibc keep what is freed for later allocations.
static void keepFreedMemory() {
  constexpr const char *kThreshold = "4000000000"; // bytes
  setenv("MALLOC_TRIM_THRESHOLD_", kThreshold, 0);
  setenv("MALLOC_MMAP_THRESHOLD_", kThreshold, 0);
}

void addRankOptions(Command &command, RankOptions &options, int leastRanks) {
  command.add("--ranks", options.ranks, "Processes").range(leastRanks, 64);
  command.add("--cluster", options.cluster,
              "Instead of --ranks: hosts emulated on this machine, such as "
              "2x2@200mbit (python/neuroshard/bench/cluster.py); needs root");
  command.add("--python", options.python, "Python interpreter that has torch");
  command.addFlag("--trim", options.trims,
                  "Let glibc give freed memory back to the system, as it does "
                  "by default: what PyTorch then frees and allocates in a step "
                  "costs page faults, more or fewer from run to run");
}

std::string topologyOf(const RankOptions &options) {
  size_t at = options.cluster.find('@');
  if (at == std::string::npos)
    return "";
  return options.cluster.substr(0, at) + "xCPU" + options.cluster.substr(at);
}

void runOnRanks(const RankOptions &options, const std::string &module,
                const std::vector<std::string> &words) {
  if (!options.trims)
    keepFreedMemory();
  std::vector<std::string> all = {"-m"};
  if (options.cluster.empty())
    all.insert(all.end(), {"torch.distributed.run", "--standalone",
                           "--nproc-per-node", std::to_string(options.ranks)});
  else
    all.insert(all.end(), {"neuroshard.bench.cluster", options.cluster});
  all.insert(all.end(), {"-m", module});
  all.insert(all.end(), words.begin(), words.end());
  runPython(options.python, all);
}

} // namespace neuroshard
