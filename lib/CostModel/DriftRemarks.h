//===- DriftRemarks.h - Remarks on copies that drift ------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_DRIFTREMARKS_H
#define NEUROSHARD_LIB_COSTMODEL_DRIFTREMARKS_H

#include "neuroshard/Model/ShardingPlan.h"

#include <string>
#include <vector>

namespace neuroshard {

/// Adds a remark for all tables whose copies are averaged after as many steps:
/// they are not trained as without sharding.
void addDriftRemarks(const ShardingPlan &plan,
                     std::vector<std::string> &remarks);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_DRIFTREMARKS_H
