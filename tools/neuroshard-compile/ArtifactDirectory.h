//===- ArtifactDirectory.h - Writes artifacts atomically --------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_ARTIFACTDIRECTORY_H
#define NEUROSHARD_TOOLS_COMPILE_ARTIFACTDIRECTORY_H

#include "mlir/IR/Location.h"

#include <map>
#include <string>

namespace neuroshard {

/// A temporary directory beside the target, which it replaces once it is
/// complete; otherwise the destructor removes it.
class ArtifactDirectory {
public:
  ArtifactDirectory() = default;
  ~ArtifactDirectory();
  ArtifactDirectory(const ArtifactDirectory &) = delete;
  ArtifactDirectory &operator=(const ArtifactDirectory &) = delete;

  /// Refuses a `target` that is neither free, nor empty, nor an artifact.
  /// Errors are emitted at `loc`, here and below.
  mlir::LogicalResult create(llvm::StringRef target, mlir::Location loc);

  /// Path of a file in it.
  std::string path(llvm::StringRef file) const;
  mlir::LogicalResult write(llvm::StringRef file, llvm::StringRef text,
                            mlir::Location loc);
  /// The hash of each file, by its path in the directory.
  mlir::FailureOr<std::map<std::string, std::string>>
  hashFiles(mlir::Location loc) const;
  mlir::LogicalResult createFolder(llvm::StringRef name, mlir::Location loc);
  mlir::LogicalResult move(llvm::StringRef from, llvm::StringRef to,
                           mlir::Location loc);

  /// Replaces the target by this directory.
  mlir::LogicalResult commit(mlir::Location loc);

private:
  std::string target;
  std::string temporary; ///< empty: nothing to remove.
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_ARTIFACTDIRECTORY_H
