//===- Files.h - Reading and writing whole files ----------------*- C++ -*-===//

#ifndef NEUROSHARD_SERIALIZATION_FILES_H
#define NEUROSHARD_SERIALIZATION_FILES_H

#include "neuroshard/Model/Diagnostics.h"

#include <string>
#include <string_view>

namespace neuroshard {

/// The content of a file, or one error that names it.
Expected<std::string> readFile(const std::string &path);

/// The errors with the file's name before their place.
Diagnostics inFile(const std::string &path, Diagnostics errors);

/// Writes a file beside `path`, then renames it, so that an interrupted call
/// leaves the earlier file whole.
Expected<void> writeFile(const std::string &path, std::string_view text);

/// An error if writeFile() would refuse the path: its folder does not exist or
/// may not be written to, or something other than a file lies there. For use
/// before long work whose result goes there.
Expected<void> checkWritable(const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_SERIALIZATION_FILES_H
