//===- WideVectors.h - Loops for the processor's own vectors ----*- C++ -*-===//
//
// The runtime is compiled for every x86-64. A loop that is worth it is compiled
// for AVX2 and AVX-512, too, and the widest that the processor has is run.
// Files that use this are built with -ffp-contract=off, so that all give the
// same bits.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_WIDEVECTORS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_WIDEVECTORS_H

/// Of a function or lambda that is compiled for the vectors of its caller.
#define NSRT_INLINE __attribute__((always_inline))

namespace neuroshard::runtime {

#if defined(__x86_64__)
// Not target_clones, whose choice at load time ends programs under
// ThreadSanitizer.
template <typename Loop>
__attribute__((target("avx512f"))) void runWithAvx512(const Loop &loop) {
  loop();
}

template <typename Loop>
__attribute__((target("avx2"))) void runWithAvx2(const Loop &loop) {
  loop();
}
#endif

/// Runs the loop: a lambda that is NSRT_INLINE, as all that it calls should be.
template <typename Loop> void runWithWidestVectors(const Loop &loop) {
#if defined(__x86_64__)
  static const bool hasAvx512 = __builtin_cpu_supports("avx512f");
  static const bool hasAvx2 = __builtin_cpu_supports("avx2");
  if (hasAvx512)
    return runWithAvx512(loop);
  if (hasAvx2)
    return runWithAvx2(loop);
#endif
  loop();
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_WIDEVECTORS_H
