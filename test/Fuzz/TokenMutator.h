//===- TokenMutator.h - Changes texts token by token ------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_FUZZ_TOKENMUTATOR_H
#define NEUROSHARD_TEST_FUZZ_TOKENMUTATOR_H

#include <cstddef>
#include <cstdint>

namespace neuroshard::fuzz {

/// A mutator for libFuzzer: numbers, names and lines of a text are replaced by
/// others of it, removed, repeated and exchanged; seldom bytes. Of a FileCheck
/// test in parts (`// -----`) one part is kept.
size_t mutateTokens(uint8_t *data, size_t size, size_t maxSize, unsigned seed);

} // namespace neuroshard::fuzz

#endif // NEUROSHARD_TEST_FUZZ_TOKENMUTATOR_H
