//===- Sets.cpp - neuroshard-collect sets ---------------------------------===//

#include "Sets.h"

#include <cstdio>

using namespace neuroshard;

CLI::App *neuroshard::addSetsCommand(CLI::App &app, SetListOptions &options) {
  CLI::App *command = app.add_subcommand(
      "sets", "List random shard sets for another machine to measure");
  command
      ->add_option("-o,--output", options.path, "File to write (safetensors)")
      ->required();
  command
      ->add_option("--device-class", options.deviceClass,
                   "Class of the device that will measure them, such as H200")
      ->required();
  command->add_option("--samples", options.samples, "Sets to list")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  command
      ->add_option("--held-out", options.heldOutShare,
                   "Share of the sets made of tables no other set uses")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Names the sets")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option_function<double>(
          "--memory",
          [&options](double gib) {
            options.sets.memoryBytes = static_cast<int64_t>(gib * 0x1p30);
          },
          "GiB of weights and optimizer state of a set, at most (2)")
      ->check(CLI::Range(0.001, 1e6));
  command
      ->add_option("--lookups", options.sets.maxLookups,
                   "Ids of a batch over all tables, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option("--batch-factor", options.sets.batchFactor,
                   "Multiplies the batches of 512 to 16384 samples")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
  return command;
}

int neuroshard::runSets(const SetListOptions &options) {
  if (Expected<void> written = writeSetList(options); !written) {
    std::fprintf(stderr, "error: %s\n", toString(written.error()).c_str());
    return 1;
  }
  return 0;
}
