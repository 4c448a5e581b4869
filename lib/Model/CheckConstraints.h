//===- CheckConstraints.h - Errors of the constraints of a problem -*- C++ -*-//

#ifndef NEUROSHARD_LIB_MODEL_CHECKCONSTRAINTS_H
#define NEUROSHARD_LIB_MODEL_CHECKCONSTRAINTS_H

#include "neuroshard/Model/ShardingProblem.h"

namespace neuroshard {

/// Adds the errors of the constraints. Those that need other parts of the
/// problem are looked for only where there are no errors.
void checkConstraints(const ShardingProblem &problem, Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_MODEL_CHECKCONSTRAINTS_H
