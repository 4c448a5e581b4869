//===- Error.h - The exception of artifacts and runtimes --------*- C++ -*-===//
//
// Where artifacts are read and run every failure is an exception with one
// message; the C interfaces catch it and turn it into a status.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_ERROR_H
#define NEUROSHARD_ARTIFACT_ERROR_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace neuroshard {

class RuntimeError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws a RuntimeError whose message is the arguments streamed together.
template <typename... Parts> [[noreturn]] void fail(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw RuntimeError(text.str());
}

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_ERROR_H
