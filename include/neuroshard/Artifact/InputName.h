//===- InputName.h - Name of a jagged input in errors -----------*- C++ -*-===//
///
/// \file
/// Names a jagged input in errors.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_INPUTNAME_H
#define NEUROSHARD_ARTIFACT_INPUTNAME_H

#include "neuroshard/Artifact/ExchangePlan.h"

#include <string>

namespace neuroshard {

/// What errors about an input that concern no single feature begin with: input
/// "user, item": , with all its features, or the first and the last.
std::string inputName(const ExchangeSpec &exchange);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_INPUTNAME_H
