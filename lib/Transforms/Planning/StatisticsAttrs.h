//===- StatisticsAttrs.h - Statistics of ids as attributes ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_STATISTICSATTRS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_STATISTICSATTRS_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/ShardingProblem.h"

#include "mlir/IR/Builders.h"

namespace neuroshard {

AccessStatistics accessFrom(ir::AccessAttr attr);
ir::AccessAttr accessAttr(const AccessStatistics &access,
                          mlir::MLIRContext *context);

/// Sets what the attribute says; name, table and pooling stay.
void readStatistics(ir::FeatureAttr attr, Feature &feature);
ir::FeatureAttr featureAttr(const Feature &feature, mlir::Builder &builder);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_STATISTICSATTRS_H
