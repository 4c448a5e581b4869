//===- Instructions.cpp - Instruction sets of inference -------------------===//

#include "Instructions.h"

using namespace neuroshard;
using namespace neuroshard::dense;

Instructions dense::bestInstructions() {
#if defined(__x86_64__)
  static const Instructions best =
      __builtin_cpu_supports("avx512f") ? Instructions::AVX512
      : __builtin_cpu_supports("avx2")  ? Instructions::AVX2
                                        : Instructions::Baseline;
  return best;
#else
  return Instructions::Baseline;
#endif
}
