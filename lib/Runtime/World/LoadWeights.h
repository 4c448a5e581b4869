//===- LoadWeights.h - Weights that an artifact brings ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_WORLD_LOADWEIGHTS_H
#define NEUROSHARD_LIB_RUNTIME_WORLD_LOADWEIGHTS_H

#include "World.h"

#include <filesystem>

namespace neuroshard::runtime {

/// Fills the shards of the world's devices from the files of the artifact in
/// `folder` (Artifact/WeightFiles.h), if it has any.
void loadWeights(nsrt_world &world, const std::filesystem::path &folder);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WORLD_LOADWEIGHTS_H
