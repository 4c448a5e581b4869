//===- Vectors.h - Vector types of the compiler -----------------*- C++ -*-===//
///
/// \file
/// For loops that are templates on the width of a vector and inlined into a
/// function for each instruction set, with the width that it has: compilers cut
/// wider vectors badly.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_VECTORS_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_VECTORS_H

#include <cstddef>
#include <cstdint>

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
