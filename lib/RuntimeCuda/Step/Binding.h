//===- Binding.h - Lookups and slots of a device ----------------*- C++ -*-===//
//
// The manifest and the GPU program of one device, and lookups in both.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_BINDING_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_BINDING_H

#include "neuroshard/Artifact/GpuProgram.h"
#include "neuroshard/Artifact/Manifest.h"

#include <filesystem>
#include <string>

namespace neuroshard::cuda {

struct Binding {
  Manifest manifest;
  int32_t device = 0;
  GpuProgram program;

  const DeviceBinding &bound() const {
    return manifest.bindings[static_cast<size_t>(device)];
  }
  size_t numLookups() const { return program.lookups.size(); }
  size_t numSlots() const { return program.slots.size(); }

  const ExchangeSpec &exchangeOf(size_t lookup) const {
    return manifest
        .exchanges[static_cast<size_t>(bound().lookups[lookup].exchange)];
  }
  const ExchangeLookup &specOf(size_t lookup) const {
    return exchangeOf(lookup)
        .lookups[static_cast<size_t>(bound().lookups[lookup].lookup)];
  }
  const ShardSpec &shardOf(size_t slot) const {
    return manifest.shards[static_cast<size_t>(bound().slots[slot])];
  }
  const TableSpec &tableOf(size_t slot) const {
    return manifest.tableOf(shardOf(slot));
  }
  /// "lookup 3 (table "user", feature "id")", for messages.
  std::string nameOf(size_t lookup) const;
};

/// Reads `directory`/manifest.json and the GPU program of `device`. Throws a
/// RuntimeError if the program does not have the manifest's hash or does not
/// fit the manifest.
Binding readBinding(const std::string &directory, int32_t device);

/// Reads a GPU program or an image of it. Throws a RuntimeError unless it has
/// the manifest's hash, or NEUROSHARD_CUDA_UNCHECKED is set, which is for
/// images that were changed by hand.
std::string readGpuFile(const std::filesystem::path &folder,
                        const Manifest &manifest, const std::string &name);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_BINDING_H
