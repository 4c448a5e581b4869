//===- Loops.h - Memory and threads of hand-written loops -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_KERNELS_LOOPS_H
#define NEUROSHARD_TOOLS_BENCH_KERNELS_LOOPS_H

#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace neuroshard::bench {

using Vector __attribute__((vector_size(64), aligned(4))) = float;
inline constexpr int64_t kLanes = 16;

inline constexpr int64_t kHugePage = int64_t{2} << 20;

/// Memory on huge pages.
class HugeMemory {
public:
  explicit HugeMemory(int64_t bytes)
      : size((bytes + kHugePage - 1) / kHugePage * kHugePage),
        memory(static_cast<std::byte *>(
            std::aligned_alloc(kHugePage, static_cast<size_t>(size)))) {
    if (!memory)
      throw std::bad_alloc();
    madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);
    std::memset(memory, 0, static_cast<size_t>(size));
  }
  ~HugeMemory() { std::free(memory); }
  HugeMemory(const HugeMemory &) = delete;
  HugeMemory &operator=(const HugeMemory &) = delete;

  std::byte *data() const { return memory; }

private:
  int64_t size;
  std::byte *memory;
};

/// Runs a function on all threads, the caller's included.
class Team {
public:
  explicit Team(int threads) : begin(threads), end(threads) {
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this] { serve(); });
  }
  ~Team() {
    stopping = true;
    begin.arrive_and_wait();
    for (std::thread &worker : workers)
      worker.join();
  }

  void run(const std::function<void()> &function) {
    job = &function;
    begin.arrive_and_wait();
    function();
    end.arrive_and_wait();
  }

private:
  void serve() {
    for (;;) {
      begin.arrive_and_wait();
      if (stopping)
        return;
      (*job)();
      end.arrive_and_wait();
    }
  }

  std::barrier<> begin, end;
  std::vector<std::thread> workers;
  const std::function<void()> *job = nullptr;
  bool stopping = false;
};

} // namespace neuroshard::bench

#endif // NEUROSHARD_TOOLS_BENCH_KERNELS_LOOPS_H
