//===- FaultTest.cpp - Faults of emulated threads -------------------------===//
//
// Shows that an access to memory that is not allocated, or a stack overflow,
// ends the launch with an error that names thread and address, and that the
// process's own handlers are restored afterwards.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "TestKernel.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::emulator;
using testing::AllOf;
using testing::HasSubstr;

namespace {

struct Access {
  volatile float *array;
  int64_t block, thread, element;
  bool isWrite;
  float sum = 0;
};

// A sanitizer would report the error before the CPU does; so below.
[[gnu::no_sanitize("undefined", "address")]] void access(Access &data) {
  nse_barrier();
  if (nse_block_id() != data.block || nse_thread_id() != data.thread)
    return;
  if (data.isWrite)
    data.array[data.element] = 1;
  else
    data.sum += data.array[data.element];
}

TEST(Fault, AnAccessPastTheEndNamesThreadAndArray) {
  auto *array = static_cast<float *>(allocateMemory(0, 400));
  for (bool isWrite : {false, true}) {
    Access data{array, 17, 41, 102, isWrite};
    std::optional<KernelError> error = launchTest<access>({20, 64}, data);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind, ErrorKind::IllegalAddress);
    EXPECT_EQ(error->block, 17u);
    EXPECT_THAT(error->message,
                AllOf(HasSubstr("block 17: thread 41 (lane 9 of warp 1) "),
                      HasSubstr("8 bytes past the end of 400 bytes of device "
                                "memory")));
#if defined(__x86_64__)
    EXPECT_THAT(error->message, HasSubstr(isWrite ? " writes to " : " reads "));
#endif
  }
  // A wrong stride does not step over the guard, whatever is mapped behind it.
  Access far{array, 17, 41, 100 + (1 << 18) - 4, true};
  std::optional<KernelError> error = launchTest<access>({20, 64}, far);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("1048560 bytes past the end of 400"));
  Access inside{array, 17, 41, 99, true};
  EXPECT_FALSE((launchTest<access>({20, 64}, inside)));
  EXPECT_EQ(array[99], 1);
  EXPECT_EQ(freeMemory(array), FreeResult::Freed);
}

// The CPU reads 8 bytes from anywhere; a GPU does not.
void readPair(uintptr_t &address) {
  constexpr int32_t eight = 3;
  nse_access(reinterpret_cast<void *>(address + 8 * nse_thread_id()), 8,
             NSE_READ | eight << NSE_ALIGNMENT_SHIFT);
}

TEST(Fault, AVectorThatIsNotAligned) {
  auto begin = reinterpret_cast<uintptr_t>(allocateMemory(0, 400));
  EXPECT_FALSE((launchTest<readPair>({1, 32}, begin)));
  uintptr_t odd = begin + 4;
  std::optional<KernelError> error = launchTest<readPair>({1, 32}, odd);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::Misaligned);
  EXPECT_THAT(error->message, HasSubstr("accesses 8 bytes, which must begin at "
                                        "a multiple of 8, from "));
  EXPECT_EQ(freeMemory(reinterpret_cast<void *>(begin)), FreeResult::Freed);
}

TEST(Fault, ANullPointer) {
  Access data{nullptr, 0, 3, 4, false};
  std::optional<KernelError> error = launchTest<access>({1, 32}, data);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message,
              HasSubstr("address 0x10, which is in no device memory"));
}

struct Number {
  volatile int value;
};

// Uses the result of the call, so that it does not become a loop.
int recurse(Number &depth) {
  volatile char frame[256];
  frame[0] = 1;
  depth.value = depth.value + 1;
  if (depth.value == 1'000'000)
    return 0;
  return recurse(depth) + frame[0];
}

void overflow(Number &depth) {
  if (nse_thread_id() == 6)
    depth.value = recurse(depth);
}

TEST(Fault, AStackThatIsTooSmall) {
  Number depth{0};
  std::optional<KernelError> error = launchTest<overflow>({1, 32}, depth);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message,
              HasSubstr("thread 6 (lane 6 of warp 0) needs more stack than "
                        "the emulator has"));
  EXPECT_GT(depth.value, 100);
}

#if defined(__x86_64__)
[[gnu::no_sanitize("undefined")]] void divide(Number &divisor) {
  if (nse_thread_id() == 2)
    divisor.value = 100 / divisor.value;
}

TEST(Fault, ADivisionByZero) {
  Number divisor{0};
  std::optional<KernelError> error = launchTest<divide>({1, 32}, divisor);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::Arithmetic);
  EXPECT_THAT(error->message, HasSubstr("divides an integer by zero"));
}
#endif

TEST(Fault, TheProcessKeepsItsOwnHandlers) {
  struct sigaction before, after;
  sigaction(SIGSEGV, nullptr, &before);
  Access data{nullptr, 0, 0, 0, false};
  EXPECT_TRUE((launchTest<access>({1, 32}, data)));
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(before.sa_sigaction, after.sa_sigaction);
}

} // namespace
