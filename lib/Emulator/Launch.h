//===- Launch.h - Running all blocks of a kernel ---------------*- C++ -*-===//
//
// Blocks run on up to two host threads, in an order that depends on the seed.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_LAUNCH_H
#define NEUROSHARD_LIB_EMULATOR_LAUNCH_H

#include "Block.h"

#include <optional>

namespace neuroshard::emulator {

/// The seed of launches: NEUROSHARD_EMULATOR_SEED, or 0.
uint64_t getSeedFromEnvironment();

/// Whether kernels may use only what the driver has given: if
/// NEUROSHARD_EMULATOR_OWN_MEMORY is 1.
bool usesOwnMemoryFromEnvironment();
/// NEUROSHARD_EMULATOR_GRANULARITY: bytes in which memory is mapped at reserved
/// addresses; a page of the host if it is not set, or no multiple of that.
size_t getGranularityFromEnvironment();

/// Whether launches look for races: if NEUROSHARD_EMULATOR_RACES is 1.
bool findsRacesFromEnvironment();

/// Whether the driver looks for races of streams: if
/// NEUROSHARD_EMULATOR_STREAM_RACES is 1.
bool findsStreamRacesFromEnvironment();

/// Runs a kernel to its end. Begins no block after an error. Of several errors,
/// returns that of the block with the lowest index. Sizes must be at least 1.
/// Throws std::bad_alloc.
std::optional<KernelError> launch(const Kernel &kernel);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_LAUNCH_H
