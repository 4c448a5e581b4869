//===- WeightsFiles.h - Weights files, kept back until a run ends -*- C++ -*-=//

#ifndef NEUROSHARD_TOOLS_OPT_WEIGHTSFILES_H
#define NEUROSHARD_TOOLS_OPT_WEIGHTSFILES_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringMap.h"

#include <mutex>
#include <string>

namespace neuroshard {

/// Lets neuroshard-raise-lookups write beside its file. What it wrote gets the
/// file's name when all passes have succeeded, and is removed otherwise, so
/// that an earlier file stays whole when a later pass fails.
class WeightsFiles {
public:
  WeightsFiles() = default;
  WeightsFiles(const WeightsFiles &) = delete;
  WeightsFiles &operator=(const WeightsFiles &) = delete;
  ~WeightsFiles();

  /// It must outlive the contexts that are made of `registry`.
  void addTo(mlir::DialectRegistry &registry);
  /// Where to write the file that becomes `path`.
  std::string placeFor(const std::string &path);
  /// Gives the files their names; the reason if that fails, else empty.
  std::string keep();

private:
  std::mutex mutex;
  /// By path, where its content is until then.
  llvm::StringMap<std::string> places;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_OPT_WEIGHTSFILES_H
