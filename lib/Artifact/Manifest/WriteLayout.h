//===- WriteLayout.h - Writes the layout of exchanges ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_WRITELAYOUT_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_WRITELAYOUT_H

#include "neuroshard/Artifact/Manifest.h"

#include <nlohmann/json.hpp>

namespace neuroshard {

/// The layouts of a manifest as JSON, per exchange; made if it has none.
nlohmann::ordered_json layoutJson(const Manifest &manifest);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_WRITELAYOUT_H
