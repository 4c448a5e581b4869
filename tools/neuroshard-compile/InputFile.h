//===- InputFile.h - Reads the input with a limit ---------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_INPUTFILE_H
#define NEUROSHARD_TOOLS_COMPILE_INPUTFILE_H

#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace neuroshard {

/// The content of a file, or of standard input for "-". Null, and an error in
/// `message`, if it cannot be read or has more than kMaxInputBytes.
std::unique_ptr<llvm::MemoryBuffer> openInput(llvm::StringRef path,
                                              std::string &message);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_INPUTFILE_H
