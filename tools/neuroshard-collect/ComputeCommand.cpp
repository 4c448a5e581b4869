//===- ComputeCommand.cpp - The command `neuroshard-collect compute` ------===//

#include "Commands.h"
#include "Progress.h"

#include "neuroshard/Collect/Collector.h"

#include <cstdio>
#include <memory>

namespace neuroshard {

static Expected<void> collect(const CollectOptions &options) {
  CollectProgress last;
  Expected<void> result = collectCompute(
      options, stopRequested(),
      [](const std::string &line) { showProgress(line); },
      [&](const CollectProgress &progress) {
        last = progress;
        showProgress(std::to_string(progress.done) + " of " +
                     std::to_string(progress.all) + " measured, " +
                     std::to_string(progress.rejected) + " rejected, " +
                     formatSeconds(progress.secondsLeft) + " left");
      });
  endProgress();
  if (!result)
    return result;
  std::fprintf(stderr, "%s: %lld of %lld measured, %lld rejected%s\n",
               options.path.c_str(), static_cast<long long>(last.done),
               static_cast<long long>(last.all),
               static_cast<long long>(last.rejected),
               stopRequested() ? "; stopped, --resume goes on" : "");
  return {};
}

void addComputeCommand(CommandLine &line) {
  auto options = std::make_shared<CollectOptions>();
  Command command = line.addCommand(
      "compute", "Measure random shard sets with this machine's kernels");
  command.add("-o,--output", options->path, "File to write (safetensors)")
      .output("file")
      .required();
  command.add("--samples", options->samples, "Sets to measure")
      .range(1, 1000000);
  command
      .add("--repeats", options->repeats,
           "Sets to measure a second time, half a run later")
      .range(0, 1000000);
  command
      .add("--held-out", options->heldOutShare,
           "Share of the sets made of tables no other set uses")
      .range(0.0, 1.0);
  command.add("--seed", options->seed, "Names the sets");
  command
      .add("--memory", options->setGiB,
           "GiB of weights and optimizer state of a set, at most")
      .range(0.001, 1e6);
  command.add("--threads", options->measure.threads, "Threads of the device")
      .range(1, 1024);
  command.add("--target-cpu", options->measure.targetCpu,
              "CPU to compile the kernels for, as for neuroshard-compile");
  command.addFlag("--resume", options->resume,
                  "Go on with a file that is there already");
  command.action([options] { return collect(*options); });
}

} // namespace neuroshard
