//===- Launch.cpp - Running all blocks of a kernel ------------------------===//
//
// Reuses blocks and their stacks for later launches.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "FaultHandler.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

namespace neuroshard::emulator {

namespace {
/// Launches of fewer blocks use one host thread.
constexpr uint32_t kMinimumShared = 8;

/// Idle blocks.
class BlockPool {
public:
  std::unique_ptr<Block> take() {
    std::lock_guard lock(mutex);
    if (idle.empty())
      return std::make_unique<Block>();
    std::unique_ptr<Block> block = std::move(idle.back());
    idle.pop_back();
    return block;
  }
  void give(std::unique_ptr<Block> block) {
    std::lock_guard lock(mutex);
    if (idle.size() < 4)
      idle.push_back(std::move(block));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Block>> idle;
};

BlockPool &getPool() {
  static BlockPool pool;
  return pool;
}

/// The blocks of a launch, which its host threads share.
class Grid {
public:
  explicit Grid(const Kernel &kernel) : kernel(kernel) {
    SplitMix64 random(kernel.seed);
    start = random.below(kernel.gridSize);
    do
      stride = 1 + random.below(kernel.gridSize);
    while (std::gcd(stride, kernel.gridSize) != 1);
  }

  /// Runs blocks until none is left or one has failed.
  void work() {
    AlternateStack alternate;
    std::unique_ptr<Block> block = getPool().take();
    for (;;) {
      uint64_t turn = next.fetch_add(1, std::memory_order_relaxed);
      if (turn >= kernel.gridSize || failed.load(std::memory_order_relaxed))
        break;
      auto index =
          static_cast<uint32_t>((start + turn * stride) % kernel.gridSize);
      if (std::optional<KernelError> error = block->run(kernel, index))
        fail(std::move(*error));
    }
    getPool().give(std::move(block));
  }

  std::optional<KernelError> takeError() { return std::move(error); }

private:
  void fail(KernelError &&found) {
    std::lock_guard lock(mutex);
    if (!error || found.block < error->block)
      error = std::move(found);
    failed = true;
  }

  const Kernel &kernel;
  uint64_t start = 0, stride = 1;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::optional<KernelError> error;
};
} // namespace

uint64_t getSeedFromEnvironment() {
  const char *text = std::getenv("NEUROSHARD_EMULATOR_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

namespace {
bool isSet(const char *variable) {
  const char *text = std::getenv(variable);
  return text && std::string_view(text) == "1";
}
} // namespace

size_t getGranularityFromEnvironment() {
  constexpr size_t kPage = 4096;
  const char *value = std::getenv("NEUROSHARD_EMULATOR_GRANULARITY");
  size_t bytes = value ? std::strtoull(value, nullptr, 10) : 0;
  return bytes > 0 && bytes % kPage == 0 ? bytes : kPage;
}

bool usesOwnMemoryFromEnvironment() {
  return isSet("NEUROSHARD_EMULATOR_OWN_MEMORY");
}

bool findsRacesFromEnvironment() { return isSet("NEUROSHARD_EMULATOR_RACES"); }

bool findsStreamRacesFromEnvironment() {
  return isSet("NEUROSHARD_EMULATOR_STREAM_RACES");
}

std::optional<KernelError> launch(const Kernel &kernel) {
  FaultHandlers handlers;
  Grid grid(kernel);
  std::thread second;
  // RaceFinder and Accesses take one block at a time.
  if (kernel.gridSize >= kMinimumShared && !kernel.races && !kernel.accesses &&
      std::thread::hardware_concurrency() > 1)
    try {
      second = std::thread([&] { grid.work(); });
    } catch (const std::system_error &) {
      // One thread does it all.
    }
  grid.work();
  if (second.joinable())
    second.join();
  return grid.takeError();
}

} // namespace neuroshard::emulator
