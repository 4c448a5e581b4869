//===- Fuzz.h - Helpers of the fuzz targets ---------------------*- C++ -*-===//
///
/// \file
/// A target is a program of libFuzzer. Its file defines LLVMFuzzerTestOneInput:
/// it reads an input as a user's file would be read, and ends the program
/// through require() if the reader breaks a promise. Readers may refuse an
/// input in their own way and in no other.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_FUZZ_FUZZ_H
#define NEUROSHARD_TEST_FUZZ_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// Changes some bytes at random; returns the new size. Part of libFuzzer.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace neuroshard::fuzz {

inline std::string_view textOf(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// Ends the program unless `holds`; libFuzzer then reports the input.
inline void require(bool holds, std::string_view promise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %.*s\n",
               static_cast<int>(promise.size()), promise.data());
  std::abort();
}

/// Puts a text in place of an input. A text that is too long leaves it alone.
inline size_t replaceInput(std::string_view text, uint8_t *data, size_t size,
                           size_t maxSize) {
  if (text.size() > maxSize)
    return size;
  text.copy(reinterpret_cast<char *>(data), text.size());
  return text.size();
}

} // namespace neuroshard::fuzz

/// Lets libFuzzer change inputs by a function of LLVMFuzzerCustomMutator's
/// type.
#define NEUROSHARD_FUZZ_MUTATOR(FUNCTION)                                      \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,        \
                                            size_t maxSize, unsigned seed) {   \
    return FUNCTION(data, size, maxSize, seed);                                \
  }

#endif // NEUROSHARD_TEST_FUZZ_FUZZ_H
