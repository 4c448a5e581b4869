//===- TorchVersion.h - The version of LibTorch -----------------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_TORCHVERSION_H
#define NEUROSHARD_TRAINING_TORCHVERSION_H

#include <string>

namespace neuroshard {

/// The version of LibTorch, such as "2.14.1".
std::string torchVersion();

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_TORCHVERSION_H
