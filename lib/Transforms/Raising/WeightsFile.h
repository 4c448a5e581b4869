//===- WeightsFile.h - Rows of constants, in a file -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_WEIGHTSFILE_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_WEIGHTSFILE_H

#include "neuroshard/Transforms/WeightsFile.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <string>
#include <utility>
#include <vector>

namespace neuroshard::raising {

/// Writes the rows of tables as f32 to a safetensors file, by the names of the
/// tables; where `place` says, if there is one. Gives the reason if that cannot
/// be done, else an empty text.
std::string
writeWeights(const std::vector<std::pair<std::string, mlir::Attribute>> &rows,
             const std::string &path, const WeightsFilePlace *place);

/// Whether the values of `contents` can be read: false for a resource that the
/// file does not have, and for elements other than f32, f16 and bf16.
bool canWrite(mlir::Attribute contents);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_WEIGHTSFILE_H
