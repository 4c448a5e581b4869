//===- BindArtifact.cpp - Python binding of an artifact's check -----------===//

#include "Bindings.h"
#include "Errors.h"

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace neuroshard;

void python::bindArtifact(nb::module_ &module) {
  module.def(
      "check_artifact",
      [](const std::string &folder) {
        try {
          checkArtifact(folder);
        } catch (const RuntimeError &error) {
          python::raise("TensorError", std::string(error.what()));
        }
      },
      nb::arg("folder"),
      "Raises a TensorError unless the folder is an artifact with all files "
      "that its manifest lists, as they were written.");
}
