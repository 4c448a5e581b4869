//===- WeightsFile.h - File of the weights of raised tables -----*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_WEIGHTSFILE_H
#define NEUROSHARD_TRANSFORMS_WEIGHTSFILE_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/DialectInterface.h"

#include <string>

namespace neuroshard {

/// Why neuroshard-raise-lookups would not write the rows of constants to
/// `path`; empty: it would. Files other than safetensors files are kept.
std::string whyNotWeightsFile(const std::string &path);

/// An interface of the dialect that a tool may add by an extension of its
/// registry, to keep back what neuroshard-raise-lookups writes until its run
/// has succeeded. Without it the pass writes the file itself.
class WeightsFilePlace : public mlir::DialectInterface::Base<WeightsFilePlace> {
public:
  WeightsFilePlace(mlir::Dialect *dialect) : Base(dialect) {}

  /// Where to write the file that the tool gives the name `path` later. May be
  /// called from several threads.
  virtual std::string placeFor(const std::string &path) const = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_WEIGHTSFILE_H
