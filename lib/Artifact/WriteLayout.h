//===- WriteLayout.h - Writes the layout of exchanges ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_WRITELAYOUT_H
#define NEUROSHARD_LIB_ARTIFACT_WRITELAYOUT_H

#include "neuroshard/Artifact/Manifest.h"

#include <nlohmann/json.hpp>

namespace neuroshard {

/// makeLayouts() as JSON, per exchange.
nlohmann::ordered_json layoutJson(const Manifest &manifest);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_WRITELAYOUT_H
