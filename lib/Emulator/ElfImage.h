//===- ElfImage.h - Size of an ELF image in memory --------------*- C++ -*-===//
//
// cuModuleLoadData gets a pointer without a size. The size follows from the ELF
// header.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_ELFIMAGE_H
#define NEUROSHARD_LIB_EMULATOR_ELFIMAGE_H

#include <cstddef>
#include <string>

namespace neuroshard::emulator {

/// Sets `bytes` to the size of the shared library at `image` and returns "".
/// Returns an error if it is no shared library for this machine.
std::string measureElfImage(const void *image, size_t &bytes);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_ELFIMAGE_H
