//===- BindArtifact.cpp - Python binding of an artifact's check -----------===//

#include "Bindings.h"
#include "Errors.h"

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/WeightFiles.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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
  module.def(
      "add_weights",
      [](const std::string &folder, const std::vector<std::string> &names) {
        try {
          addWeights(folder, names);
        } catch (const RuntimeError &error) {
          python::raise("TensorError", std::string(error.what()));
        }
      },
      nb::arg("folder"), nb::arg("names"),
      "Writes into the manifest of an artifact which file in its folder has "
      "the weights of each shard. Raises a TensorError if one is missing or "
      "of another size.");
  module.def("device_groups", &groupsOfSizes, nb::arg("sizes"),
             "The groups of devices between which results may go by relay, "
             "from the sizes of those of the topology's innermost level.");
}
