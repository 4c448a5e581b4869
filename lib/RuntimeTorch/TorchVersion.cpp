//===- TorchVersion.cpp - The version of PyTorch the library is built for -===//
//
// python/neuroshard/_native/torch_version.py reads this text from the file
// before it loads the library: in a process with another PyTorch the library
// might load and crash.
//
//===----------------------------------------------------------------------===//

#include <torch/version.h>

[[gnu::used]] static const char kBuiltFor[] =
    "neuroshard built for torch " TORCH_VERSION;
