//===- RandomManifest.h - Random models and plans --------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_ARTIFACT_RANDOMMANIFEST_H
#define NEUROSHARD_TEST_ARTIFACT_RANDOMMANIFEST_H

#include "neuroshard/Artifact/Manifest.h"

#include <random>
#include <vector>

namespace neuroshard::test {

/// A consistent manifest with tables of all types and optimizers, cut by rows
/// and columns at random, and functions of all kinds of values.
Manifest randomManifest(std::mt19937 &random);

/// Cuts of [0, size) into `count` ranges, at multiples of `step`.
std::vector<Range> randomCuts(std::mt19937 &random, int64_t size, int64_t step,
                              int64_t count);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_ARTIFACT_RANDOMMANIFEST_H
