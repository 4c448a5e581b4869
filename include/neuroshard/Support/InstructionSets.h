//===- InstructionSets.h - Loops for the processor's vectors ----*- C++ -*-===//
//
// Libraries are compiled for every x86-64. A loop that is worth it is compiled
// for AVX2 and AVX-512, too, and the widest that the processor has is run.
// Files that use this are built with -ffp-contract=off, so that all give the
// same bits.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_INSTRUCTIONSETS_H
#define NEUROSHARD_SUPPORT_INSTRUCTIONSETS_H

#include <cstddef>
#include <type_traits>

/// Of a member function or lambda that is compiled for the instruction set of
/// its caller.
#define NEUROSHARD_INLINE __attribute__((always_inline))

namespace neuroshard {

/// From the narrowest vectors to the widest.
enum class InstructionSet { Baseline, AVX2, AVX512 };

/// The widest that this machine has.
inline InstructionSet widestInstructionSet() {
#if defined(__x86_64__)
  static const InstructionSet widest =
      __builtin_cpu_supports("avx512f") ? InstructionSet::AVX512
      : __builtin_cpu_supports("avx2")  ? InstructionSet::AVX2
                                        : InstructionSet::Baseline;
  return widest;
#else
  return InstructionSet::Baseline;
#endif
}

#if defined(__x86_64__)
// Not target_clones, whose choice at load time ends programs under
// ThreadSanitizer, and whose vectors may be those of the least set.
template <typename Loop>
__attribute__((target("avx512f"))) void runWithAvx512(const Loop &loop) {
  loop(std::integral_constant<size_t, 16>());
}

template <typename Loop>
__attribute__((target("avx2"))) void runWithAvx2(const Loop &loop) {
  loop(std::integral_constant<size_t, 8>());
}
#endif

/// Runs a loop compiled for an instruction set that this machine has: a lambda
/// that is NEUROSHARD_INLINE, as all that it calls should be, of the number of
/// floats in a vector, which is a constant.
template <typename Loop> void runFor(InstructionSet set, const Loop &loop) {
#if defined(__x86_64__)
  if (set == InstructionSet::AVX512)
    return runWithAvx512(loop);
  if (set == InstructionSet::AVX2)
    return runWithAvx2(loop);
#endif
  loop(std::integral_constant<size_t, 4>());
}

/// Runs a loop, a lambda without parameters, compiled for the widest vectors.
template <typename Loop> void runWithWidestVectors(const Loop &loop) {
  runFor(widestInstructionSet(), [&](auto) NEUROSHARD_INLINE { loop(); });
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_INSTRUCTIONSETS_H
