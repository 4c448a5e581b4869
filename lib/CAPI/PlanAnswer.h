//===- PlanAnswer.h - What the planner answers a C caller -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CAPI_PLANANSWER_H
#define NEUROSHARD_LIB_CAPI_PLANANSWER_H

#include "neuroshard/Planner/Search.h"

#include <string>
#include <vector>

namespace neuroshard::capi {

/// The document that `neuroshard plan --json` prints.
std::string writeAnswer(const SearchResult &result,
                        const std::vector<std::string> &remarks);

/// An object with limit, message, details and advice.
std::string writeError(const Diagnosis &diagnosis);

/// Wrong input as a diagnosis: the first error is the message.
Diagnosis diagnosisOf(const Diagnostics &errors);

} // namespace neuroshard::capi

#endif // NEUROSHARD_LIB_CAPI_PLANANSWER_H
