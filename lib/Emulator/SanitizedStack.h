//===- SanitizedStack.h - A stack as sanitizers know it --------*- C++ -*-===//
//
// Tells the address or the thread sanitizer which stack a host thread runs on.
// Without it, the first reports errors on stacks that it does not know, and the
// second mixes up the calls of all fibers. Empty in a build without them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_SANITIZEDSTACK_H
#define NEUROSHARD_LIB_EMULATOR_SANITIZEDSTACK_H

#include <cstddef>
#include <span>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace neuroshard::emulator {

#if defined(__SANITIZE_ADDRESS__)

class SanitizedStack {
public:
  /// A new fiber will begin on `stack`.
  void begin(std::span<std::byte> stack) {
    bottom = stack.data();
    bytes = stack.size();
  }

  /// To be called directly before the switch from this stack to `next`.
  void leaveFor(const SanitizedStack &next) {
    left = this;
    __sanitizer_start_switch_fiber(&fakeStack, next.bottom, next.bytes);
  }

  /// To be called directly after a switch to this stack.
  void arrive() {
    // The bounds of a host thread's own stack come from here.
    __sanitizer_finish_switch_fiber(fakeStack, &left->bottom, &left->bytes);
  }

private:
  static inline thread_local SanitizedStack *left = nullptr;
  const void *bottom = nullptr;
  size_t bytes = 0;
  /// Where variables live that are checked for use after return. The next fiber
  /// on this stack takes it over.
  void *fakeStack = nullptr;
};

#elif defined(__SANITIZE_THREAD__)

class SanitizedStack {
public:
  SanitizedStack() = default;
  SanitizedStack(const SanitizedStack &) = delete;
  SanitizedStack &operator=(const SanitizedStack &) = delete;
  ~SanitizedStack() { destroy(); }

  void begin(std::span<std::byte>) {
    destroy();
    context = __tsan_create_fiber(0);
    isFiber = true;
  }

  /// A switch orders what comes before and after it: races of GPU threads are
  /// for RaceFinder. Inlined, as the end of a call would count on the stack of
  /// `next`.
  [[gnu::always_inline]] void leaveFor(const SanitizedStack &next) {
    context = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(next.context, 0);
  }

  void arrive() {}

private:
  void destroy() {
    if (isFiber)
      __tsan_destroy_fiber(context);
  }

  void *context = nullptr;
  bool isFiber = false; // false: a host thread's own stack
};

#else

class SanitizedStack {
public:
  void begin(std::span<std::byte>) {}
  void leaveFor(const SanitizedStack &) {}
  void arrive() {}
};

#endif

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_SANITIZEDSTACK_H
