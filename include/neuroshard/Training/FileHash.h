//===- FileHash.h - SHA-1 of a file -----------------------------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_FILEHASH_H
#define NEUROSHARD_TRAINING_FILEHASH_H

#include "neuroshard/Model/Diagnostics.h"

#include <string>

namespace neuroshard {

/// The SHA-1 of a file's bytes in hexadecimal, as sha1sum prints it.
Expected<std::string> fileSha1(const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_FILEHASH_H
