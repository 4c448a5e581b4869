//===- ModelRemarks.h - Remarks on weak predictions -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_MODELREMARKS_H
#define NEUROSHARD_LIB_COSTMODEL_MODELREMARKS_H

#include "neuroshard/CostModel/ModelLibrary.h"

#include <string>
#include <vector>

namespace neuroshard {

/// See CostModel::remarks: devices that no part covers, parts trained on
/// simulated times, shards and devices outside the training data, members that
/// disagree.
std::vector<std::string> remarksOn(const ModelParts &parts,
                                   std::span<const ShardSet> sets,
                                   const Topology &topology);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_MODELREMARKS_H
