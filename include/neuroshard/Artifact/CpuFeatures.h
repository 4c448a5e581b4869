//===- CpuFeatures.h - Instruction sets that an artifact needs -*- C++ -*-===//

#ifndef NEUROSHARD_ARTIFACT_CPUFEATURES_H
#define NEUROSHARD_ARTIFACT_CPUFEATURES_H

#include "neuroshard/Artifact/Manifest.h"

#include <string_view>

namespace neuroshard {

/// Whether compiled code may have instructions of this set, by LLVM's name, and
/// CPUs of the architecture may lack it. None but those of x86-64.
bool isCpuFeature(std::string_view name);

/// Throws a RuntimeError that names what the artifact needs and this machine's
/// CPU lacks: its code would end the process.
void checkCpu(const Manifest &manifest);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_CPUFEATURES_H
