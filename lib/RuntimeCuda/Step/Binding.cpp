//===- Binding.cpp - Lookups and slots of a device ------------------------===//
//
// Reads and checks the two files of a device.
//
//===----------------------------------------------------------------------===//

#include "Binding.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"

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

/// The text of a program's .gpu.json.
std::string readProgram(const std::filesystem::path &folder,
                        const ProgramFiles &program) {
  std::filesystem::path file =
      folder /
      std::filesystem::path(program.library).replace_extension(".gpu.json");
  if (!program.gpuHash.empty())
    return readHashed(file, program.gpuHash, "manifest.json");
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored))
    fail("'", (folder / "manifest.json").string(), "' does not know ",
         file.filename().string(),
         ", which is of another compilation; compile the model again");
  fail("'", folder.string(), "' has no ", file.filename().string(),
       ": it was compiled for the CPU alone; compile the model with --gpu");
}

} // namespace

Binding readBinding(const std::string &directory, int32_t device) {
  std::filesystem::path folder(directory);
  Binding binding;
  binding.manifest = parseManifest(readFile(folder / "manifest.json"));
  if (device < 0 || device >= binding.manifest.numDevices)
    fail("there is no device ", device, " in '", directory, "'; its plan has ",
         binding.manifest.numDevices, ", numbered from 0");
  binding.device = device;
  const ProgramFiles &program =
      binding.manifest.programs[static_cast<size_t>(binding.bound().program)];
  binding.program = parseGpuProgram(readProgram(folder, program));
  checkGpuProgram(binding.program, binding.manifest, device);
  bindMeans(binding.program, binding.manifest, device);
  return binding;
}

} // namespace neuroshard::cuda
