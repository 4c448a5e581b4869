//===- Binding.cpp - What a device's lookups and slots are ----------------===//
//
// Reads the two documents of a device.
//
//===----------------------------------------------------------------------===//

#include "Binding.h"
#include "../Runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {

std::string Binding::nameOf(size_t lookup) const {
  const LookupSpec &spec = specOf(lookup);
  std::ostringstream text;
  text << "lookup " << lookup << " (table \""
       << manifest.tables[size_t(spec.table)].name << "\", feature \""
       << exchangeOf(lookup).features[size_t(spec.feature)] << "\")";
  return text.str();
}

std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!stream || !text)
    fail("cannot read '", path, "': ", std::strerror(errno));
  return text.str();
}

Binding readBinding(const std::string &directory, int32_t device) {
  std::filesystem::path folder(directory);
  Binding binding;
  binding.manifest = parseManifest(readFile(folder / "manifest.json"));
  if (device < 0 || device >= binding.manifest.numDevices)
    fail("there is no device ", device, " in '", directory, "'; its plan has ",
         binding.manifest.numDevices, ", numbered from 0");
  binding.device = device;
  std::filesystem::path library =
      binding.manifest.programs[size_t(binding.bound().program)];
  std::filesystem::path file = folder / library.replace_extension(".gpu.json");
  if (!std::filesystem::exists(file))
    fail("'", directory, "' has no ", file.filename().string(),
         ": it was compiled for the CPU alone; compile the model with --gpu");
  binding.program = parseGpuProgram(readFile(file));
  checkGpuProgram(binding.program, binding.manifest, device);
  bindMeans(binding.program, binding.manifest, device);
  return binding;
}

} // namespace neuroshard::cuda
