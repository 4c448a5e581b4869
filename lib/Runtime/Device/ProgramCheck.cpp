//===- ProgramCheck.cpp - Validation of a program for a device ------------===//
//
// Compares the program that a library exports with the manifest's binding, so
// that no kernel runs on memory it was not compiled for.
//
//===----------------------------------------------------------------------===//

#include "ProgramCheck.h"
#include "neuroshard/Artifact/Error.h"

namespace neuroshard::runtime {
namespace {

class ProgramChecker {
public:
  ProgramChecker(const Manifest &manifest, int32_t device,
                 const nsrt_program &program)
      : manifest(manifest),
        binding(manifest.bindings[static_cast<size_t>(device)]),
        program(program), where("program " + std::to_string(binding.program) +
                                " for device " + std::to_string(device)),
        withNormExchange(manifest.tablesWithNormExchange()) {}

  void check() const {
    if (program.version != NSRT_PROGRAM_VERSION)
      fail(where, ": expected interface version ", NSRT_PROGRAM_VERSION,
           " of compiled programs, found ", program.version,
           "; compile the model again with this version of NeuroShard");
    expect("number of slots", static_cast<int64_t>(binding.slots.size()),
           program.num_slots);
    expect("number of lookups", static_cast<int64_t>(binding.lookups.size()),
           program.num_lookups);
    for (size_t i = 0; i < binding.slots.size(); ++i)
      checkSlot(i);
    for (size_t i = 0; i < binding.lookups.size(); ++i)
      checkLookup(i);
  }

private:
  void expect(const std::string &what, int64_t expected, int64_t found) const {
    if (expected != found)
      fail(where, ": expected ", what, " ", expected,
           " as in the manifest, found ", found,
           "; the library does not belong to this manifest");
  }

  void checkSlot(size_t index) const {
    const nsrt_slot_entry &slot = program.slots[index];
    const ShardSpec &shard =
        manifest.shards[static_cast<size_t>(binding.slots[index])];
    const TableSpec &table = manifest.tableOf(shard);
    std::string name =
        "slot " + std::to_string(index) + " (shard \"" + shard.name + "\") ";
    expect(name + "columns", shard.cols.size(), slot.dim);
    expect(name + "bytes of a row",
           rowBytes(shard.cols.size(), table.elementType), slot.row_bytes);
    bool trains = slot.update || slot.reduce || slot.apply;
    if (trains && !table.trained())
      fail(where, ": ", name, "has update kernels, but table \"", table.name,
           "\" has no optimizer");
    if (!trains)
      return;
    expect(name + "states per element", table.states().perElement,
           slot.state_elements);
    expect(name + "states per row", table.states().perRow, slot.state_rows);
    bool twoPhase = withNormExchange[static_cast<size_t>(shard.table)];
    bool hasBoth = slot.reduce && slot.apply;
    if (static_cast<bool>(slot.update) == twoPhase || hasBoth != twoPhase)
      fail(where, ": ", name, "expected ",
           twoPhase ? "a reduce and an apply kernel" : "an update kernel",
           ", found another set of kernels");
    expect(name + "weighted flag", hasWeightedLookup(index), slot.weighted);
  }

  bool hasWeightedLookup(size_t slot) const {
    for (const LookupBinding &bound : binding.lookups)
      if (static_cast<size_t>(bound.slot) == slot && lookupOf(bound).weighted)
        return true;
    return false;
  }

  const ExchangeLookup &lookupOf(const LookupBinding &bound) const {
    return manifest.exchanges[static_cast<size_t>(bound.exchange)]
        .lookups[static_cast<size_t>(bound.lookup)];
  }

  void checkLookup(size_t index) const {
    const nsrt_lookup_entry &entry = program.lookups[index];
    const LookupBinding &bound = binding.lookups[index];
    std::string name = "lookup " + std::to_string(index) + " ";
    expect(name + "slot", bound.slot, entry.slot);
    expect(name + "id bytes",
           manifest.packedIdBytes(
               manifest.exchanges[static_cast<size_t>(bound.exchange)]),
           entry.id_bytes);
    expect(name + "pooled flag", lookupOf(bound).pooled(), entry.pooled);
    expect(name + "weighted flag", lookupOf(bound).weighted, entry.weighted);
    if (!entry.forward)
      fail(where, ": ", name, "has no forward kernel");
  }

  const Manifest &manifest;
  const DeviceBinding &binding;
  const nsrt_program &program;
  std::string where;
  std::vector<bool> withNormExchange; ///< by table.
};

} // namespace

void checkProgram(const Manifest &manifest, int32_t device,
                  const nsrt_program &program) {
  ProgramChecker(manifest, device, program).check();
}

} // namespace neuroshard::runtime
