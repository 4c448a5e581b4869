//===- FiberSwitch.cpp - Changing from one stack to another ---------------===//
//
// For x86-64 and AArch64, by the System V calling conventions. Floating-point
// modes are not saved: kernels do not change them.
//
//===----------------------------------------------------------------------===//

#include "FiberSwitch.h"

#include <cstdint>
#include <cstring>

extern "C" void neuroshard_emulator_switch(void **from, void *to);

#if defined(__x86_64__)

asm(R"(
.text
.p2align 4
.hidden neuroshard_emulator_switch
.globl neuroshard_emulator_switch
.type neuroshard_emulator_switch, @function
neuroshard_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size neuroshard_emulator_switch, .-neuroshard_emulator_switch
)");

namespace {
/// From the stack pointer up: six registers, then the address to return to.
constexpr size_t kSavedWords = 6;
constexpr size_t kReturnWord = 6;
/// At a function's entry the stack pointer is 8 past a multiple of 16.
constexpr size_t kFrameWords = 8;
} // namespace

#elif defined(__aarch64__)

asm(R"(
.text
.p2align 4
.hidden neuroshard_emulator_switch
.globl neuroshard_emulator_switch
.type neuroshard_emulator_switch, %function
neuroshard_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size neuroshard_emulator_switch, .-neuroshard_emulator_switch
)");

namespace {
constexpr size_t kSavedWords = 20;
/// x30, the link register.
constexpr size_t kReturnWord = 11;
constexpr size_t kFrameWords = 20;
} // namespace

#else
#error "the emulator knows x86-64 and AArch64; add another one here"
#endif

namespace neuroshard::emulator {

void switchStacks(void **from, void *to) {
  neuroshard_emulator_switch(from, to);
}

void *prepareStack(std::byte *top, void (*entry)()) {
  static_assert(kReturnWord < kFrameWords && kSavedWords <= kFrameWords);
  uint64_t frame[kFrameWords] = {};
  frame[kReturnWord] = reinterpret_cast<uintptr_t>(entry);
  auto end = reinterpret_cast<uintptr_t>(top) / 16 * 16;
  std::byte *begin = top - (reinterpret_cast<uintptr_t>(top) - end);
  begin -= sizeof(frame);
  std::memcpy(begin, frame, sizeof(frame));
  return begin;
}

} // namespace neuroshard::emulator
