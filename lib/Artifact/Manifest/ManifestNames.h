//===- ManifestNames.h - Names of the kinds of values ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_MANIFESTNAMES_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_MANIFESTNAMES_H

#include "neuroshard/Artifact/Manifest.h"

#include <array>

namespace neuroshard {

/// In the order of ValueKind.
inline constexpr std::array<const char *, 7> kValueKinds = {
    "device", "handle", "scalar", "tensor", "jagged", "weights", "state"};

inline const char *nameOf(ValueKind kind) {
  return kValueKinds[static_cast<size_t>(kind)];
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_MANIFESTNAMES_H
