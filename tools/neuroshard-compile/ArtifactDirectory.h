//===- ArtifactDirectory.h - Writes artifacts atomically --------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_ARTIFACTDIRECTORY_H
#define NEUROSHARD_TOOLS_COMPILE_ARTIFACTDIRECTORY_H

#include "PartialDirectory.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <memory>
#include <string>

namespace neuroshard {

/// The files of an artifact, in a directory beside the target, which it
/// replaces once it is complete.
class ArtifactDirectory {
public:
  /// Refuses a `target` that is neither free nor empty, nor an artifact without
  /// other files. Errors are emitted at `loc`, here and below.
  mlir::LogicalResult create(llvm::StringRef target, mlir::Location loc);

  /// Path of a file in it.
  std::string path(llvm::StringRef file) const;
  mlir::LogicalResult write(llvm::StringRef file, llvm::StringRef text,
                            mlir::Location loc);
  mlir::LogicalResult createFolder(llvm::StringRef name, mlir::Location loc);
  mlir::LogicalResult move(llvm::StringRef from, llvm::StringRef to,
                           mlir::Location loc);

  /// The hash of each file, by its path in the directory.
  mlir::FailureOr<std::map<std::string, std::string>>
  hashFiles(mlir::Location loc) const;

  /// Takes a file out of the directory; its bytes stay while the result lives.
  mlir::FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
  take(llvm::StringRef file, mlir::Location loc);

  /// An error if commit() would refuse what is at the target.
  mlir::LogicalResult checkReplaceable(mlir::Location loc) const;

  /// Replaces the target by this directory.
  mlir::LogicalResult commit(mlir::Location loc);

private:
  std::string target;
  PartialDirectory partial;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_ARTIFACTDIRECTORY_H
