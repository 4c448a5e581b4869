//===- WeightsFile.h - Check of the path of a weights file ------*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_WEIGHTSFILE_H
#define NEUROSHARD_TRANSFORMS_WEIGHTSFILE_H

#include <string>

namespace neuroshard {

/// Why neuroshard-raise-lookups would not write the rows of constants to
/// `path`; empty: it would. Files other than safetensors files are kept.
std::string whyNotWeightsFile(const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_WEIGHTSFILE_H
