//===- Vectors.h - Vector types of the compiler -----------------*- C++ -*-===//
///
/// \file
/// For loops that are written once and compiled for several instruction sets.
/// A loop is a template on the width of a vector that is inlined into one
/// function for each set, with the width that it has: compilers cut wider
/// vectors badly, in functions with target_clones even to those of the least
/// set.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_VECTORS_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_VECTORS_H

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#define NEUROSHARD_X86 1
#define NEUROSHARD_AVX2 __attribute__((target("avx2")))
#define NEUROSHARD_AVX512 __attribute__((target("avx512f")))
#endif
#define NEUROSHARD_INLINE __attribute__((always_inline)) inline

namespace neuroshard::dense {

/// The compiler's vector types; a template's own would be no vectors to it.
template <size_t Lanes> struct Vectors;
template <> struct Vectors<4> {
  using Floats = float __attribute__((vector_size(16)));
  using Ints = int32_t __attribute__((vector_size(16)));
};
template <> struct Vectors<8> {
  using Floats = float __attribute__((vector_size(32)));
  using Ints = int32_t __attribute__((vector_size(32)));
};
template <> struct Vectors<16> {
  using Floats = float __attribute__((vector_size(64)));
  using Ints = int32_t __attribute__((vector_size(64)));
};

} // namespace neuroshard::dense

#endif // NEUROSHARD_LIB_COSTMODEL_LAYERS_VECTORS_H
