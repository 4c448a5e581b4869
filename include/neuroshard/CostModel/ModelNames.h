//===- ModelNames.h - Names that mean models of ours ------------*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_MODELNAMES_H
#define NEUROSHARD_COSTMODEL_MODELNAMES_H

#include <string_view>

namespace neuroshard {

/// The cost model that tools use unless told otherwise.
inline constexpr std::string_view kDefaultCostModel = "auto";

/// What `name` may be, in one line, for help texts.
inline constexpr std::string_view kCostModelNames =
    "auto (the measured models for the topology, else the closed form), "
    "roofline, reference, model files separated by commas, the machine file "
    "(.json) of neuroshard calibrate, or the name of a registered model "
    "(--load-cost-model-plugin)";

/// Endings of the files that names may be.
inline constexpr std::string_view kModelFileEnding = ".safetensors";
inline constexpr std::string_view kMachineFileEnding = ".json";

/// Whether the name means a model of ours, or a file with one.
inline bool isBuiltInCostModel(std::string_view name) {
  return name == kDefaultCostModel || name == "roofline" ||
         name == "reference" || name.ends_with(kModelFileEnding) ||
         name.ends_with(kMachineFileEnding);
}

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_MODELNAMES_H
