//===- Binding.cpp - Lookups and slots of a device ------------------------===//
//
// Reads and checks the two files of a device.
//
//===----------------------------------------------------------------------===//

#include "Binding.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"

#include <cstdlib>

namespace neuroshard::cuda {

std::string Binding::nameOf(size_t lookup) const {
  const ExchangeLookup &spec = specOf(lookup);
  std::ostringstream text;
  text << "lookup " << lookup << " (table \""
       << manifest.tables[static_cast<size_t>(spec.table)].name
       << "\", feature \""
       << exchangeOf(lookup).features[static_cast<size_t>(spec.feature)]
       << "\")";
  return text.str();
}

namespace {

bool isUnchecked() {
  const char *unchecked = std::getenv("NEUROSHARD_CUDA_UNCHECKED");
  return unchecked && *unchecked;
}

/// The text of a program's .gpu.json.
std::string readProgram(const std::filesystem::path &folder,
                        const Manifest &manifest, const ProgramFiles &program) {
  std::string file = std::filesystem::path(program.library)
                         .replace_extension(".gpu.json")
                         .string();
  if (manifest.files.contains(file))
    return readGpuFile(folder, manifest, file);
  std::error_code ignored;
  if (std::filesystem::exists(folder / file, ignored))
    fail("'", (folder / kManifestFile).string(), "' does not know ", file,
         ", which is of another compilation; compile the model again");
  fail("'", folder.string(), "' has no ", file,
       ": it was compiled for the CPU alone; compile the model with --gpu or "
       "--emulate");
}

} // namespace

std::string readGpuFile(const std::filesystem::path &folder,
                        const Manifest &manifest, const std::string &name) {
  return isUnchecked() ? readFile(folder / name)
                       : readListed(folder, manifest, name);
}

Binding readBinding(const std::string &directory, int32_t device) {
  std::filesystem::path folder(directory);
  Binding binding;
  binding.manifest = openManifest(folder);
  if (device < 0 || device >= binding.manifest.numDevices)
    fail("there is no device ", device, " in '", directory, "'; its plan has ",
         binding.manifest.numDevices, ", numbered from 0");
  binding.device = device;
  const ProgramFiles &program =
      binding.manifest.programs[static_cast<size_t>(binding.bound().program)];
  binding.program =
      parseGpuProgram(readProgram(folder, binding.manifest, program));
  checkGpuProgram(binding.program, binding.manifest, device);
  bindMeans(binding.program, binding.manifest, device);
  return binding;
}

} // namespace neuroshard::cuda
