//===- HugeBuffer.h - Floats on huge pages ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COLLECT_HUGEBUFFER_H
#define NEUROSHARD_LIB_COLLECT_HUGEBUFFER_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>

namespace neuroshard::collect {

/// A growing buffer on huge pages, as the runtime's are, filled with one value.
class HugeBuffer {
public:
  explicit HugeBuffer(float value = 0) : value(value) {}

  /// At least `count` floats; what they held is lost when the buffer grows.
  float *reserve(int64_t count) {
    if (count > capacity)
      grow(count + count / 4);
    return memory.get();
  }

private:
  static constexpr size_t kPageBytes = size_t{2} << 20;

  void grow(int64_t count) {
    size_t bytes =
        (static_cast<size_t>(count) * sizeof(float) + kPageBytes - 1) /
        kPageBytes * kPageBytes;
    memory.reset(static_cast<float *>(std::aligned_alloc(kPageBytes, bytes)));
    if (!memory)
      throw std::bad_alloc();
    madvise(memory.get(), bytes, MADV_HUGEPAGE);
    capacity = static_cast<int64_t>(bytes / sizeof(float));
    std::fill_n(memory.get(), capacity, value);
  }

  struct Free {
    void operator()(float *p) const { std::free(p); }
  };
  float value;
  std::unique_ptr<float, Free> memory;
  int64_t capacity = 0;
};

} // namespace neuroshard::collect

#endif // NEUROSHARD_LIB_COLLECT_HUGEBUFFER_H
