//===- ReferenceClosedForm.h - Model of the 24 reference tasks --*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_REFERENCECLOSEDFORM_H
#define NEUROSHARD_COSTMODEL_REFERENCECLOSEDFORM_H

#include "neuroshard/Planner/CostModel.h"

#include <memory>

namespace neuroshard {

/// The closed form of test/reference_search/README.md: one number per set, so
/// it serves only the `published` objective. The input exchange
/// takes no time.
std::unique_ptr<CostModel> makeReferenceModel();

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_REFERENCECLOSEDFORM_H
