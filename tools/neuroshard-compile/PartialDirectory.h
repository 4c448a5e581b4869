//===- PartialDirectory.h - Output in progress ------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_PARTIALDIRECTORY_H
#define NEUROSHARD_TOOLS_COMPILE_PARTIALDIRECTORY_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <system_error>

namespace neuroshard {

/// A directory `<target>.partial-...` that takes the place of `target` in one
/// step. The destructor removes it, and so do signals that end the process;
/// what a killed process has left is removed by the next one with this target.
class PartialDirectory {
public:
  PartialDirectory() = default;
  ~PartialDirectory();
  PartialDirectory(const PartialDirectory &) = delete;
  PartialDirectory &operator=(const PartialDirectory &) = delete;

  /// `target`: an absolute path.
  std::error_code create(llvm::StringRef target);
  const std::string &path() const { return name; }

  /// Puts it at the target. What is there is replaced.
  std::error_code commit();

private:
  std::string target;
  std::string name;    ///< empty: nothing to remove.
  int descriptor = -1; ///< locked, which tells others that somebody works here.
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_PARTIALDIRECTORY_H
