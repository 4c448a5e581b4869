//===- TorchVersion.cpp - The version of LibTorch -------------------------===//

#include "neuroshard/Training/TorchVersion.h"

#include <torch/version.h>

std::string neuroshard::torchVersion() { return TORCH_VERSION; }
