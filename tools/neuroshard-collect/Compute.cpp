//===- Compute.cpp - neuroshard-collect compute ---------------------------===//

#include "Compute.h"

#include "Progress.h"

#include <cstdio>

using namespace neuroshard;

namespace {

/// CLI11's ranges let "nan" through.
CLI::Validator isNumber() {
  return CLI::Validator(
      [](std::string &text) {
        double value = 0;
        bool number = CLI::detail::lexical_cast(text, value) && value == value;
        return number ? std::string() : "expected a number, got: " + text;
      },
      "");
}

} // namespace

CLI::App *neuroshard::addComputeCommand(CLI::App &app,
                                        CollectOptions &options) {
  CLI::App *command = app.add_subcommand(
      "compute", "Measure random shard sets with this machine's kernels");
  command
      ->add_option("-o,--output", options.path, "File to write (safetensors)")
      ->required();
  command->add_option("--samples", options.samples, "Sets to measure")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  command
      ->add_option("--repeats", options.repeats,
                   "Sets to measure a second time, half a run later")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}))
      ->capture_default_str();
  command
      ->add_option("--held-out", options.heldOutShare,
                   "Share of the sets made of tables no other set uses")
      ->check(CLI::Range(0.0, 1.0) & isNumber())
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Names the sets")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--memory", options.setGiB,
                   "GiB of weights and optimizer state of a set, at most")
      ->check(CLI::Range(0.001, 1e6) & isNumber())
      ->capture_default_str();
  command
      ->add_option("--threads", options.measure.threads,
                   "Threads of the device")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--target-cpu", options.measure.targetCpu,
                   "CPU to compile the kernels for, as for neuroshard-compile")
      ->capture_default_str();
  command->add_flag("--resume", options.resume,
                    "Go on with a file that is there already");
  return command;
}

int neuroshard::runCompute(const CollectOptions &options) {
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
  if (!result) {
    std::fprintf(stderr, "error: %s\n", toString(result.error()).c_str());
    return 1;
  }
  std::fprintf(stderr, "%s: %lld of %lld measured, %lld rejected%s\n",
               options.path.c_str(), static_cast<long long>(last.done),
               static_cast<long long>(last.all),
               static_cast<long long>(last.rejected),
               stopRequested() ? "; stopped, --resume goes on" : "");
  return 0;
}
