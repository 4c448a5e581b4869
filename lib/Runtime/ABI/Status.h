//===- Status.h - Exceptions as return values -------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_ABI_STATUS_H
#define NEUROSHARD_LIB_RUNTIME_ABI_STATUS_H

#include <cstdint>
#include <exception>
#include <new>

namespace neuroshard::runtime {

/// What nsrt_last_error returns on this thread.
void setLastError(const char *text) noexcept;

/// Returns what `function` returns, or `failure` if it throws.
template <typename Result, typename Function>
Result orElse(Result failure, const Function &function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc &) {
    setLastError("no memory");
  } catch (const std::exception &error) {
    setLastError(error.what());
  }
  return failure;
}

template <typename Function> int32_t status(const Function &function) noexcept {
  return orElse<int32_t>(1, [&] {
    function();
    return 0;
  });
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_ABI_STATUS_H
