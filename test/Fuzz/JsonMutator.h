//===- JsonMutator.h - Changes JSON texts at random -------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_FUZZ_JSONMUTATOR_H
#define NEUROSHARD_TEST_FUZZ_JSONMUTATOR_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>

namespace neuroshard::fuzz {

/// Another document: values replaced, copied to other places, removed,
/// repeated, or nested. A text that is no JSON is returned as it is.
std::string changeJson(std::string_view text, std::minstd_rand &random);

/// A mutator for libFuzzer: most often changeJson(), else bytes.
size_t mutateJson(uint8_t *data, size_t size, size_t maxSize, unsigned seed);

/// The same for documents that `draw` makes at random: it begins with one, and
/// takes another now and then.
size_t mutateDrawnJson(uint8_t *data, size_t size, size_t maxSize,
                       unsigned seed,
                       const std::function<std::string(std::mt19937 &)> &draw);

} // namespace neuroshard::fuzz

#endif // NEUROSHARD_TEST_FUZZ_JSONMUTATOR_H
