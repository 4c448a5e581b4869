//===- Poison.h - Memory that is not to be used -----------------*- C++ -*-===//
//
// The address sanitizer takes a block of a pool for one object. These calls
// tell it which part is in use; they do nothing in other builds.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_HOST_POISON_H
#define NEUROSHARD_LIB_RUNTIME_HOST_POISON_H

#include "PageBlock.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace neuroshard::runtime {

/// Allows accesses to the first `used` bytes of a block, and to no others.
inline void allowBytes([[maybe_unused]] const PageBlock &block,
                       [[maybe_unused]] int64_t used) {
#if defined(__SANITIZE_ADDRESS__)
  if (block.device())
    return; // its work may come later
  auto bytes = static_cast<size_t>(used);
  __asan_unpoison_memory_region(block.data(), bytes);
  __asan_poison_memory_region(block.data() + bytes,
                              static_cast<size_t>(block.size()) - bytes);
#endif
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_HOST_POISON_H
