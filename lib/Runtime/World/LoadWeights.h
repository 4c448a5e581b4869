//===- LoadWeights.h - Weights that an artifact brings ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_WORLD_LOADWEIGHTS_H
#define NEUROSHARD_LIB_RUNTIME_WORLD_LOADWEIGHTS_H

#include "Device/Device.h"

#include <filesystem>

namespace neuroshard::runtime {

/// Fills the shards of a device from the files of the artifact in `folder`
/// (Artifact/WeightFiles.h), if it has any.
void loadWeights(Device &device, const std::filesystem::path &folder);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WORLD_LOADWEIGHTS_H
