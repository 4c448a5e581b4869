//===- ReadLayout.h - Reads the layout of exchanges -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_READLAYOUT_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_READLAYOUT_H

#include "JsonValue.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

namespace neuroshard {

/// Reads the member `layout` of a manifest. Throws a RuntimeError unless every
/// index is in range, every shard is looked up where it is bound, and each
/// result gets each column of each of its parts once, directly or through one
/// relay. Expects a plan that checkManifest() accepts.
std::vector<ExchangeLayout> readLayouts(const JsonValue &value,
                                        const ExchangePlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_READLAYOUT_H
