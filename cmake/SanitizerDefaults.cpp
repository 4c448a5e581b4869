//===- SanitizerDefaults.cpp - Options of sanitizers in all programs ------===//
//
// Compiled into every program of a build with sanitizers. What ASAN_OPTIONS and
// UBSAN_OPTIONS say goes first.
//
//===----------------------------------------------------------------------===//

#define DEFAULTS(NAME, TEXT)                                                   \
  extern "C" __attribute__((visibility("default"), used)) const char *NAME() { \
    return TEXT;                                                               \
  }

#if defined(__SANITIZE_ADDRESS__)
DEFAULTS(__ubsan_default_options, "print_stacktrace=1")
#if defined(NEUROSHARD_WITH_LLVM)
// Our code inlines a half of LLVM's containers and allocators; the other half,
// in LLVM's libraries, has no sanitizer. Together they would mark memory as not
// to be used and not take that back.
DEFAULTS(__asan_default_options,
         "allow_user_poisoning=0:detect_container_overflow=0")
#endif
#endif
