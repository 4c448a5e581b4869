//===- GuardedArray.h - Arrays that end at an unmapped page ----*- C++ -*-===//
//
// A read or write past the end of the array ends the test program.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_KERNELS_GUARDEDARRAY_H
#define NEUROSHARD_TEST_KERNELS_GUARDEDARRAY_H

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace neuroshard {

template <typename T> class GuardedArray {
public:
  explicit GuardedArray(const std::vector<T> &values) : length(values.size()) {
    size_t page = sysconf(_SC_PAGESIZE);
    size_t bytes = length * sizeof(T);
    mappedBytes = (bytes + page - 1) / page * page + page;
    mapped = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      std::abort();
    char *guard = static_cast<char *>(mapped) + mappedBytes - page;
    mprotect(guard, page, PROT_NONE);
    first = reinterpret_cast<T *>(guard - bytes);
    std::copy(values.begin(), values.end(), first);
  }
  GuardedArray(const GuardedArray &) = delete;
  GuardedArray &operator=(const GuardedArray &) = delete;
  ~GuardedArray() { munmap(mapped, mappedBytes); }

  T *data() { return first; }
  T &operator[](size_t i) { return first[i]; }
  std::vector<T> copy() const { return {first, first + length}; }

private:
  size_t length;
  size_t mappedBytes;
  void *mapped;
  T *first;
};

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_GUARDEDARRAY_H
