//===- ElfImage.cpp - Size of an ELF image in memory ----------------------===//
//
// A file ends with its last section or with the table of sections.
//
//===----------------------------------------------------------------------===//

#include "ElfImage.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace neuroshard::emulator {

namespace {
#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#else
constexpr int kMachine = EM_AARCH64;
#endif
constexpr int kCudaMachine = 190; // EM_CUDA
} // namespace

std::string measureElfImage(const void *image, size_t &bytes) {
  auto *data = static_cast<const char *>(image);
  if (!image || std::strncmp(data, ELFMAG, SELFMAG) != 0)
    return "not the contents of an .emulated.so (PTX runs on a GPU only)";
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  if (header.e_machine == kCudaMachine)
    return "a cubin runs on a GPU only; the emulator takes an .emulated.so";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
      header.e_type != ET_DYN || header.e_shentsize != sizeof(Elf64_Shdr))
    return "not a shared library for this machine";
  bytes =
      header.e_shoff + static_cast<size_t>(header.e_shnum) * sizeof(Elf64_Shdr);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, data + header.e_shoff + i * sizeof(section),
                sizeof(section));
    if (section.sh_type != SHT_NOBITS)
      bytes = std::max(
          bytes, static_cast<size_t>(section.sh_offset + section.sh_size));
  }
  return {};
}

} // namespace neuroshard::emulator
