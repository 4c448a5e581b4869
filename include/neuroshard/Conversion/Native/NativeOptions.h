//===- NativeOptions.h - Options of native code generation ------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_NATIVEOPTIONS_H
#define NEUROSHARD_CONVERSION_NATIVE_NATIVEOPTIONS_H

#include <string>

namespace neuroshard {

struct NativeOptions {
  /// "host", or a CPU of this machine's architecture by LLVM's name, such as
  /// "x86-64-v3" or "znver4".
  std::string targetCpu = "host";
  /// 0 to 3, as -O0 to -O3. No level contracts or reassociates floating-point
  /// arithmetic without a flag of the op.
  int optLevel = 3;
  /// Also writes <library>.mlir (LLVM dialect), <library>.ll (optimised) and
  /// <library>.o.
  bool keepIntermediates = false;
  /// Instruments memory accesses for LLVM's address sanitizer. The library then
  /// loads into processes alone that have this sanitizer.
  bool addressSanitizer = false;
  /// The linker; by default ld.lld-22 or ld.lld, from the search path or from
  /// the LLVM that NeuroShard was built with.
  std::string linker;
  /// File for a module and the passes that fail on it; see RunPasses.h.
  std::string crashReproducer;
};

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_NATIVE_NATIVEOPTIONS_H
