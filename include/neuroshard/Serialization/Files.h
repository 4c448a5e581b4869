//===- Files.h - Check where a file may be written --------------*- C++ -*-===//

#ifndef NEUROSHARD_SERIALIZATION_FILES_H
#define NEUROSHARD_SERIALIZATION_FILES_H

#include "neuroshard/Model/Diagnostics.h"

#include <string>

namespace neuroshard {

/// Whether writeFile() (Json.h) would write there: the folder exists and may be
/// written to, and what is at the path, if anything, is a regular file or a
/// symbolic link to one. To be asked before long work whose result goes there.
Expected<void> checkWritable(const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_SERIALIZATION_FILES_H
