//===- RandomGpuProgram.h - Random records of GPU programs -----*- C++ -*-===//

#ifndef NEUROSHARD_TEST_ARTIFACT_RANDOMGPUPROGRAM_H
#define NEUROSHARD_TEST_ARTIFACT_RANDOMGPUPROGRAM_H

#include "neuroshard/Artifact/GpuProgram.h"

#include <random>

namespace neuroshard::test {

/// Slots and lookups of all kinds; of no manifest.
GpuProgram randomGpuProgram(std::mt19937 &random);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_ARTIFACT_RANDOMGPUPROGRAM_H
