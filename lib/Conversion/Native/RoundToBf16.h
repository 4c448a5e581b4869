//===- RoundToBf16.h - The function that rounds f32 to bf16 -----*- C++ -*-===//
//
// LLVM keeps a bf16 value that crosses blocks as f32 where the CPU has no bf16
// instructions, and calls __truncsfbf2 to get it back. The function is part of
// compiler-rt and of libgcc from version 13 on; generated code brings its own
// and so needs neither.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_ROUNDTOBF16_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_ROUNDTOBF16_H

namespace llvm {
class Module;
} // namespace llvm

namespace neuroshard {

/// Defines `bfloat __truncsfbf2(float)` in `code`: rounds to nearest, ties to
/// even; an f32 that came from a bf16 gives that one's bits, NaNs included.
/// Hidden, and dropped by the linker where nothing calls it.
void defineRoundToBf16(llvm::Module &code);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_ROUNDTOBF16_H
