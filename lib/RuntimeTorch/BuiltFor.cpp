//===- BuiltFor.cpp - Says which PyTorch the library was built for --------===//
//
// Read from the file (python/neuroshard/_binaries.py) before the library is
// loaded: into another PyTorch it might load, and then do anything.
//
//===----------------------------------------------------------------------===//

#include <torch/version.h>

[[gnu::used]] static const char builtFor[] =
    "neuroshard built for torch " TORCH_VERSION;
