//===- CheckFunctions.h - Checks of a manifest's functions -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_CHECKFUNCTIONS_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_CHECKFUNCTIONS_H

#include "neuroshard/Artifact/Manifest.h"

namespace neuroshard {

/// Checks that the functions take and return what the exchanges and tables say,
/// that the parts of a step fit together, and that the reference fits them.
/// Throws a RuntimeError.
void checkFunctions(const Manifest &manifest);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_CHECKFUNCTIONS_H
