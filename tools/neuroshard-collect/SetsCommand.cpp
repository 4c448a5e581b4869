//===- SetsCommand.cpp - The command `neuroshard-collect sets` ------------===//

#include "Commands.h"

#include "neuroshard/Collect/SetList.h"

#include <memory>

namespace neuroshard {

namespace {

struct SetsSettings {
  SetListOptions list;
  double setGiB = 2;
};

Expected<void> listSets(const SetsSettings &settings) {
  SetListOptions list = settings.list;
  list.sets.memoryBytes = static_cast<int64_t>(settings.setGiB * 0x1p30);
  return writeSetList(list);
}

} // namespace

void addSetsCommand(CommandLine &line) {
  auto settings = std::make_shared<SetsSettings>();
  SetListOptions &list = settings->list;
  Command command = line.addCommand(
      "sets", "List random shard sets for another machine to measure");
  command.add("-o,--output", list.path, "File to write (safetensors)")
      .output("file")
      .required();
  command
      .add("--device-class", list.deviceClass,
           "Class of the device that will measure them, such as H200")
      .required()
      .deviceClass();
  command.add("--samples", list.samples, "Sets to list").range(1, 1000000);
  command
      .add("--held-out", list.heldOutShare,
           "Share of the sets made of tables no other set uses")
      .range(0.0, 1.0);
  command.add("--seed", list.seed, "Names the sets");
  command
      .add("--memory", settings->setGiB,
           "GiB of weights and optimizer state of a set, at most")
      .range(0.001, 1e6);
  command
      .add("--lookups", list.sets.maxLookups,
           "Ids of a batch over all tables, at most")
      .range(int64_t{1}, int64_t{1} << 40);
  command
      .add("--batch-factor", list.sets.batchFactor,
           "Multiplies the batches of 512 to 16384 samples")
      .range(1, 1024);
  command.action([settings] { return listSets(*settings); });
}

} // namespace neuroshard
