//===- Ranks.h - Benchmarks on ranks of torch.distributed -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_RANKS_H
#define NEUROSHARD_TOOLS_BENCH_RANKS_H

#include "CommandLine.h"

#include <string>
#include <vector>

namespace neuroshard {

/// Where the ranks of a benchmark run.
struct RankOptions {
  int ranks = 2;
  std::string cluster;
  std::string python = NEUROSHARD_BENCH_PYTHON;
  bool trims = false; ///< glibc may give freed memory back.
};

void addRankOptions(Command &command, RankOptions &options, int leastRanks);

/// "2x2@200mbit" is the topology 2x2xCPU@200mbit; empty without a cluster.
std::string topologyOf(const RankOptions &options);

/// Becomes the launcher of `python -m module words...` on the ranks.
[[noreturn]] void runOnRanks(const RankOptions &options,
                             const std::string &module,
                             const std::vector<std::string> &words);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_RANKS_H
