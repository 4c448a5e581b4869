//===- LastError.h - Text of the last error ---------------------*- C++ -*-===//
//
// One text for each host thread.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_LASTERROR_H
#define NEUROSHARD_LIB_EMULATOR_LASTERROR_H

#include <string>

namespace neuroshard::emulator {

/// The text of the calling host thread.
inline std::string &getLastError() {
  static thread_local std::string text;
  return text;
}

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_LASTERROR_H
