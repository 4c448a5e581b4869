//===- Error.h - The exception of artifacts and runtimes --------*- C++ -*-===//
//
// Where artifacts are read and run every failure is an exception with one
// message; the C interfaces catch it and turn it into a status.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_ERROR_H
#define NEUROSHARD_ARTIFACT_ERROR_H

#include "neuroshard/Support/Printable.h"

#include <sstream>
#include <stdexcept>
#include <string>

namespace neuroshard {

/// The message is one printable line.
class RuntimeError : public std::runtime_error {
public:
  explicit RuntimeError(const std::string &message)
      : std::runtime_error(withShortWords(printable(message))) {}
};

/// Throws a RuntimeError whose message is the arguments streamed together.
template <typename... Parts> [[noreturn]] void fail(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw RuntimeError(text.str());
}

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_ERROR_H
