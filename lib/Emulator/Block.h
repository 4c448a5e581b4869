//===- Block.h - The threads of one block of a kernel ----------*- C++ -*-===//
//
// Runs the threads of a block as fibers of one host thread. A fiber runs until
// it waits. Then a random runnable fiber is next, so that a kernel that lacks
// synchronisation gives other results with another seed.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_BLOCK_H
#define NEUROSHARD_LIB_EMULATOR_BLOCK_H

#include "Accesses.h"
#include "Fiber.h"
#include "FiberStacks.h"
#include "RaceFinder.h"
#include "neuroshard/Support/Random.h"

#include "neuroshard/Emulator/EmulatorABI.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::emulator {

/// nsrt_invoke_<kernel> of an emulated module.
using KernelFunction = void (*)(void **params);

/// One launch of a kernel.
struct Kernel {
  std::string_view name;
  KernelFunction function = nullptr;
  void **params = nullptr;
  uint32_t gridSize = 1;  // blocks, in x
  uint32_t blockSize = 1; // threads, in x
  uint64_t seed = 0;
  /// A block that takes more steps is stopped. Default: a million for each of
  /// 256 threads.
  uint64_t maximumSteps = uint64_t{1} << 28;
  /// Null: races are not looked for.
  RaceFinder *races = nullptr;
  /// Null: accesses are not recorded.
  Accesses *accesses = nullptr;
  /// Whether memory that the driver has not given is refused.
  bool ownMemoryOnly = false;
};

enum class ErrorKind {
  Convergence,    // threads wait for others that never arrive
  IllegalAddress, // memory that is not allocated, or a stack overflow
  Misaligned,     // an address that a GPU refuses
  Race,           // unordered accesses to the same memory
  Endless,        // a block exceeds the maximum of steps
  Arithmetic,     // the CPU traps where a GPU gives some value
};

struct KernelError {
  ErrorKind kind;
  /// Kernel, block, thread and what it did.
  std::string message;
  uint32_t block;
};

/// A signal that a thread of the kernel caused.
struct Fault {
  int signal = 0; // 0: none
  const void *address = nullptr;
  bool isWrite = false;
  /// Whether the CPU does not tell the address.
  bool isUnknown = false;
};

/// Operations that lanes of a warp do together.
enum class WarpOp : uint8_t {
  Sync,
  ShuffleBfly,
  ShuffleUp,
  ShuffleDown,
  ShuffleIdx,
  Ballot
};

class Block {
public:
  /// Runs block `index` of a kernel to its end, or to the first error.
  std::optional<KernelError> run(const Kernel &kernel, uint32_t index);

  /// The block that the calling host thread runs; null outside a kernel.
  static Block *getCurrent();

  /// @{ For the fibers of this block.
  uint32_t getThread() const { return current; }
  uint32_t getIndex() const { return index; }
  const Kernel &getKernel() const { return *kernel; }
  uint64_t meetLanes(WarpOp op, uint32_t mask, uint32_t value, uint32_t offset,
                     uint32_t maskAndClamp);
  void meetBlock();
  /// `kind` with the bits of an alignment.
  void access(const void *address, size_t bytes, int32_t kind) {
    countStep();
    uintptr_t alignment = uintptr_t{1} << (kind >> NSE_ALIGNMENT_SHIFT);
    if (reinterpret_cast<uintptr_t>(address) & (alignment - 1))
      stopMisaligned(address, bytes, alignment);
    constexpr int32_t kKinds = (1 << NSE_ALIGNMENT_SHIFT) - 1;
    auto accessKind = nse_access_kind(kind & kKinds);
    if (kernel->ownMemoryOnly)
      requireDriverMemory(address, bytes);
    if (kernel->races && !checkAccess(address, bytes, accessKind))
      stop();
    if (kernel->accesses)
      kernel->accesses->add(address, bytes, accessKind);
  }
  /// @}

  /// For the signal handler: abandons the block. Does not return.
  [[noreturn]] void fault(const Fault &happened);

private:
  enum class State : uint8_t { Runnable, AtWarp, AtBarrier, Finished };
  struct Thread {
    uint64_t result;
    uint32_t mask, value, offset, maskAndClamp;
    WarpOp op;
    State state;
  };

  void prepare();
  [[noreturn]] static void enterThread();
  [[noreturn]] void leaveThread();
  [[noreturn]] void stop();
  void switchTo(uint32_t thread);
  void waitForOthers();
  uint32_t takeRunnable();
  void release(uint32_t thread);

  bool haveAllArrived(uint32_t warp, uint32_t mask) const;
  bool completeWarpOp(uint32_t warp, uint32_t mask);
  bool shuffle(uint32_t thread);
  /// Stops a block that has taken too many steps. A step is an access to
  /// memory, or a barrier, shuffle or vote.
  void countStep() {
    if (++numSteps == kernel->maximumSteps)
      stopEndless();
  }
  [[noreturn]] void stopEndless();
  [[noreturn]] void stopMisaligned(const void *address, size_t bytes,
                                   uintptr_t alignment);
  void requireDriverMemory(const void *address, size_t bytes);
  bool checkAccess(const void *address, size_t bytes, nse_access_kind kind);
  void reject(uint32_t thread, const std::string &what);

  /// @{ Texts of errors.
  std::string describeThread(uint32_t thread) const;
  std::string describeWait(uint32_t thread) const;
  std::string describeMissing(uint32_t thread) const;
  KernelError describeDeadlock() const;
  KernelError describeFault() const;
  KernelError makeError(ErrorKind kind, uint32_t thread,
                        const std::string &what) const;
  /// @}

  const Kernel *kernel = nullptr;
  uint32_t index = 0;
  uint32_t current = 0;
  uint32_t numFinished = 0, numAtBarrier = 0;
  uint64_t numSteps = 0;
  Fiber scheduler;
  FiberStacks stacks;
  std::vector<Fiber> fibers; // of the threads
  SplitMix64 random;
  std::vector<Thread> threads;
  std::vector<uint32_t> runnable;
  /// Mask of the waiting lanes of each warp.
  std::vector<uint32_t> waiting;
  std::optional<KernelError> error;
  Fault faulted;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_BLOCK_H
